// A bundle opened on a device, as most subcommands need it.
#pragma once

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "runtime/Executor.h"

namespace grok::grokrun {

struct Session {
  std::shared_ptr<Bundle> bundle;
  std::unique_ptr<Executor> executor;
  double loadSeconds = 0;

  /// `resident`: the option that asks for a kernel that stays; null: none.
  static absl::StatusOr<Session> open(const std::string &bundle,
                                      const std::string &device,
                                      const char *resident = nullptr);
};

/// Adds BUNDLE.
void addBundle(CLI::App &command, std::string &path);
/// Adds --device.
void addDevice(CLI::App &command, std::string &device);

} // namespace grok::grokrun
