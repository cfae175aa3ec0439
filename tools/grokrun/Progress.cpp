#include "tools/grokrun/Progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace grok::grokrun {
namespace {

constexpr char kBar[] = "########################################";
constexpr int kBarWidth = sizeof(kBar) - 1;

} // namespace

Progress::Progress(std::string label)
    : label_(std::move(label)), terminal_(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (shown_ >= 0)
    std::fputc('\n', stderr);
}

void Progress::update(uint64_t done, uint64_t total) {
  int percent = total ? int(double(done) / double(total) * 100) : 100;
  if (!terminal_ || percent == shown_)
    return;
  shown_ = percent;
  int filled = percent * kBarWidth / 100;
  std::fprintf(stderr, "\r%s [%.*s%*s] %3d %%", label_.c_str(), filled, kBar,
               kBarWidth - filled, "", percent);
  std::fflush(stderr);
}

} // namespace grok::grokrun
