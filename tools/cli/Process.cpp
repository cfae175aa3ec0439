#include "tools/cli/Process.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include "tools/cli/BusError.h"
#include "tools/cli/Memory.h"
#include "tools/cli/Signals.h"

namespace grok {
namespace {

/// Of 0, 1 and 2 those that are closed, else the next file that is opened would
/// get their number, and messages. Reading and writing there fail as before.
void fillStandardDescriptors() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0)
      ::open("/", O_PATH); // gets the least number that is free
}

} // namespace

void prepareProcess() {
  fillStandardDescriptors();
  std::signal(SIGXFSZ, SIG_IGN); // the system refuses to write instead
  removeTemporariesOnSignals();
  explainBusErrors();
  cli::explainTermination();
}

} // namespace grok
