#include "tools/cli/BusError.h"

#include <csignal>
#include <string_view>
#include <unistd.h>

#include "runtime/bundle/Temporaries.h"

namespace grok {
namespace {

/// What a handler may not call is left alone: nothing is allocated or
/// formatted.
void explain(int) {
  constexpr std::string_view kMessage =
      "error: a file became shorter, or could not be read, while it was in use "
      "(bus error at mapped memory); leave files alone while they are read, "
      "replace a bundle by renaming another one into its place\n";
  [[maybe_unused]] ssize_t written =
      ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  removeTemporaries();
  ::_exit(1);
}

} // namespace

void explainBusErrors() {
  struct sigaction action = {};
  action.sa_handler = explain;
  ::sigfillset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace grok
