#include "tools/grokrun/Session.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/api/Device.h"

namespace grok::grokrun {

absl::StatusOr<Session> Session::open(const std::string &path,
                                      const std::string &device,
                                      const char *resident) {
  auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(path);
  if (!bundle.ok())
    return bundle.status();
  absl::StatusOr<std::unique_ptr<Executor>> executor =
      openExecutor(**bundle, device, {});
  if (!executor.ok())
    return executor.status();
  if (resident)
    if (absl::Status s = (*executor)->stayResident(); !s.ok())
      return absl::Status(s.code(), absl::StrCat(resident, ": ", s.message()));
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return Session{std::move(*bundle), std::move(*executor), took.count()};
}

void addBundle(CLI::App &command, std::string &path) {
  command.add_option("BUNDLE", path, "The bundle, NAME.grok")->required();
}

void addDevice(CLI::App &command, std::string &device) {
  command
      .add_option("--device", device,
                  "auto (a GPU if one fits, else the CPU), cpu or cuda:N")
      ->type_name("D")
      ->capture_default_str();
}

} // namespace grok::grokrun
