// Unix sockets with a name in the file system.
#pragma once

#include <string>
#include <sys/types.h>
#include <sys/un.h>

#include "absl/status/statusor.h"
#include "runtime/bundle/Temporaries.h"
#include "tools/grokrun/serve/Descriptor.h"

namespace grok::serve {

/// A socket that clients connect to. Its file goes when it is closed, when the
/// owner goes, and when a signal ends the process.
class SocketFile {
public:
  /// Listens at `path`, whose file gets the permissions `mode`. A socket that a
  /// process left which runs no more is replaced. AlreadyExists if somebody
  /// listens there or it is no socket; InvalidArgument for a path that is too
  /// long.
  absl::Status open(const std::string &path, mode_t mode);
  SocketFile() = default;
  SocketFile(const SocketFile &) = delete;
  ~SocketFile() { close(); }
  /// -1 once it is closed.
  int descriptor() const { return socket_.get(); }
  void close();

private:
  absl::Status bindTo(const std::string &path, const sockaddr_un &address,
                      mode_t mode);

  Descriptor socket_;
  Temporary file_;
  dev_t device_ = 0; // of the file: another server may have put its own there
  ino_t inode_ = 0;
};

/// A blocking connection. NotFound or Unavailable if nobody listens at `path`.
absl::StatusOr<Descriptor> connectTo(const std::string &path);

} // namespace grok::serve
