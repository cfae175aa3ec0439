#include "tools/grokc/Progress.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/cli/Printable.h"

namespace grok::grokc {
namespace {

constexpr int kBarWidth = 40;
/// Work from which on lines in a log are worth while, as is saying how long it
/// takes. Bytes, not time: what a run says must not depend on the machine.
constexpr uint64_t kLargeWork = uint64_t(1) << 30;

/// How far the work is: on a terminal a line that is drawn again whenever a
/// percent has passed, as writing costs more than packing small extents;
/// elsewhere a line for every tenth.
class Meter {
public:
  Meter(const char *what, bool terminal) : what_(what), terminal_(terminal) {}

  void update(uint64_t done, uint64_t total) {
    if (!terminal_ && total < kLargeWork)
      return;
    const int step = terminal_ ? 1 : 10;
    int percent =
        total ? int(double(done) / double(total) * 100) / step * step : 100;
    bool first = shown_ < 0;
    if (first) { // what is done by now was done by an earlier run
      begin_ = std::chrono::steady_clock::now();
      before_ = done;
    }
    if (percent == std::exchange(shown_, percent))
      return;
    if (terminal_)
      drawBar(percent, left(done, total), total);
    else if (!first)
      std::fprintf(stderr, "%s: %d %% of %.2f GB%s\n", what_, percent,
                   double(total) * 1e-9, left(done, total).c_str());
    std::fflush(stderr);
  }

private:
  /// How long the rest takes if it goes on like this; empty: not known.
  std::string left(uint64_t done, uint64_t total) const {
    if (done <= before_ || done >= total)
      return "";
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin_;
    return absl::StrFormat(", %.0f s left", took.count() *
                                                double(total - done) /
                                                double(done - before_));
  }
  void drawBar(int percent, const std::string &left, uint64_t total) const {
    int filled = percent * kBarWidth / 100;
    std::fprintf(stderr, "\r%s [%.*s%*s] %3d %% of %.2f GB", what_, filled,
                 "########################################", kBarWidth - filled,
                 "", percent, double(total) * 1e-9);
    if (percent == 100)
      std::fputs("               \n", stderr);
    else if (!left.empty())
      std::fprintf(stderr, "%s   ", left.c_str());
  }

  const char *what_;
  const bool terminal_;
  int shown_ = -1; // percent
  std::chrono::steady_clock::time_point begin_;
  uint64_t before_ = 0;
};

std::function<void(uint64_t, uint64_t)> meter(const char *what) {
  return [meter = std::make_shared<Meter>(what, isatty(STDERR_FILENO))](
             uint64_t done, uint64_t total) { meter->update(done, total); };
}

} // namespace

CompileHooks consoleHooks() {
  CompileHooks hooks;
  hooks.report = [](CompileHooks::Severity severity,
                    const std::string &message) {
    const char *word =
        severity == CompileHooks::Severity::kWarning ? "warning" : "remark";
    std::fprintf(stderr, "%s: %s\n", word, cli::printable(message).c_str());
  };
  hooks.progress = meter("weights");
  hooks.checked = meter("check");
  return hooks;
}

} // namespace grok::grokc
