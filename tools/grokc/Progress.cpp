#include "tools/grokc/Progress.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <unistd.h>

#include "tools/cli/Printable.h"

namespace grok::grokc {
namespace {

constexpr int kBarWidth = 40;

/// A line that is drawn again whenever a percent has passed: writing costs more
/// than packing small extents.
class Bar {
public:
  explicit Bar(const char *what) : what_(what) {}

  void draw(uint64_t done, uint64_t total) {
    auto now = std::chrono::steady_clock::now();
    if (shown_ < 0) { // what is done by now was done by an earlier run
      begin_ = now;
      before_ = done;
    }
    int percent = total ? int(double(done) / double(total) * 100) : 100;
    if (percent == shown_)
      return;
    shown_ = percent;
    int filled = percent * kBarWidth / 100;
    std::fprintf(stderr, "\r%s [%.*s%*s] %3d %% of %.2f GB", what_, filled,
                 "########################################", kBarWidth - filled,
                 "", percent, double(total) * 1e-9);
    std::chrono::duration<double> took = now - begin_;
    if (percent == 100)
      std::fputs("               \n", stderr);
    else if (done > before_)
      std::fprintf(stderr, ", %.0f s left   ",
                   took.count() * double(total - done) /
                       double(done - before_));
    std::fflush(stderr);
  }

private:
  const char *what_;
  int shown_ = -1; // percent
  std::chrono::steady_clock::time_point begin_;
  uint64_t before_ = 0;
};

std::function<void(uint64_t, uint64_t)> bar(const char *what) {
  return [bar = std::make_shared<Bar>(what)](uint64_t done, uint64_t total) {
    bar->draw(done, total);
  };
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
  if (isatty(STDERR_FILENO)) {
    hooks.progress = bar("weights");
    hooks.checked = bar("check");
  }
  return hooks;
}

} // namespace grok::grokc
