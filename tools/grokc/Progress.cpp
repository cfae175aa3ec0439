#include "tools/grokc/Progress.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <unistd.h>

namespace grok::grokc {
namespace {

constexpr int kBarWidth = 40;

/// Draws only when a percent has passed: writing costs more than packing small
/// extents.
void drawBar(const char *what, uint64_t done, uint64_t total, int &shown) {
  int percent = total ? int(double(done) / double(total) * 100) : 100;
  if (percent == shown)
    return;
  shown = percent;
  int filled = percent * kBarWidth / 100;
  std::fprintf(stderr, "\r%s [%.*s%*s] %3d %% of %.2f GB%s", what, filled,
               "########################################", kBarWidth - filled,
               "", percent, double(total) * 1e-9, percent == 100 ? "\n" : "");
  std::fflush(stderr);
}

std::function<void(uint64_t, uint64_t)> bar(const char *what) {
  return
      [what, shown = std::make_shared<int>(-1)](uint64_t done, uint64_t total) {
        drawBar(what, done, total, *shown);
      };
}

} // namespace

CompileHooks consoleHooks() {
  CompileHooks hooks;
  hooks.report = [](CompileHooks::Severity severity,
                    const std::string &message) {
    const char *word =
        severity == CompileHooks::Severity::kWarning ? "warning" : "remark";
    std::fprintf(stderr, "%s: %s\n", word, message.c_str());
  };
  if (isatty(STDERR_FILENO)) {
    hooks.progress = bar("weights");
    hooks.checked = bar("check");
  }
  return hooks;
}

} // namespace grok::grokc
