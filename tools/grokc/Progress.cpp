#include "tools/grokc/Progress.h"

#include <cstdio>
#include <memory>
#include <unistd.h>

namespace grok::grokc {
namespace {

constexpr int kBarWidth = 40;

/// Draws only when a percent has passed: writing costs more than packing small
/// extents.
void drawBar(uint64_t done, uint64_t total, int &shown) {
  int percent = total ? int(double(done) / double(total) * 100) : 100;
  if (percent == shown)
    return;
  shown = percent;
  int filled = percent * kBarWidth / 100;
  std::fprintf(stderr, "\rweights [%.*s%*s] %3d %% of %.2f GB%s", filled,
               "########################################", kBarWidth - filled,
               "", percent, double(total) * 1e-9, percent == 100 ? "\n" : "");
  std::fflush(stderr);
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
  if (isatty(STDERR_FILENO))
    hooks.progress = [shown = std::make_shared<int>(-1)](uint64_t done,
                                                         uint64_t total) {
      drawBar(done, total, *shown);
    };
  return hooks;
}

} // namespace grok::grokc
