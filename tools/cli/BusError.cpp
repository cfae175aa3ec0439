#include "tools/cli/BusError.h"

#include <charconv>
#include <climits>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <span>
#include <string_view>
#include <unistd.h>

#include "runtime/bundle/Temporaries.h"
#include "tools/cli/Printable.h"

namespace grok {
namespace {

// Nothing here allocates: it is called by a handler of signals.

/// Whether a line of /proc/self/maps, "BEGIN-END ...", is of an address.
bool holds(std::string_view line, uintptr_t address) {
  uintptr_t begin = 0, end = 0;
  const char *stop = line.data() + line.size();
  const char *dash = std::from_chars(line.data(), stop, begin, 16).ptr;
  if (dash == stop || *dash != '-')
    return false;
  std::from_chars(dash + 1, stop, end, 16);
  return begin <= address && address < end;
}

/// The line of /proc/self/maps that is of an address, in `memory`; empty:
/// there is none.
std::string_view findMapping(uintptr_t address, std::span<char> memory) {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  char piece[1024];
  size_t length = 0;
  ssize_t got;
  while ((got = ::read(maps, piece, sizeof(piece))) > 0)
    for (char c : std::string_view(piece, size_t(got))) {
      const std::string_view line(memory.data(), length);
      if (c != '\n' && length < memory.size())
        memory[length++] = c;
      else if (c == '\n' && holds(line, address))
        return line;
      else if (c == '\n')
        length = 0;
    }
  return {};
}

void explain(int, siginfo_t *info, void *) {
  char memory[PATH_MAX + 128]; // what is before the path is shorter
  const std::string_view line =
      findMapping(reinterpret_cast<uintptr_t>(info->si_addr), memory);
  const size_t path = line.find('/'); // nothing before it has one
  for (std::string_view text :
       {std::string_view("error: "),
        path == line.npos ? "a file" : line.substr(path),
        std::string_view(
            ": became shorter, or could not be read, while it was in use (bus "
            "error at mapped memory); leave files alone while they are read, "
            "replace a bundle by renaming another one into its place\n")})
    cli::writePrintable(text);
  removeTemporaries(cli::writePrintable);
  ::_exit(1);
}

} // namespace

void explainBusErrors() {
  struct sigaction action = {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO;
  ::sigfillset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

} // namespace grok
