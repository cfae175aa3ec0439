#include "tools/grokrun/serve/Connection.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <utility>

#include "tools/grokrun/serve/Protocol.h"

namespace grok::serve {
namespace {

/// What one client is read of before the others get their turn.
constexpr size_t kReadBytes = 64 << 10;

} // namespace

Connection::Connection(Descriptor socket) : socket_(std::move(socket)) {
  ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
}

void Connection::split(std::string_view bytes, std::vector<Line> &lines) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end == bytes.npos ? bytes.size() : end + 1);
    if (!skipping_ && input_.size() + part.size() > kMostLineBytes) {
      lines.push_back({{}, true});
      skipping_ = true;
      input_.clear();
      input_.shrink_to_fit();
    }
    if (!skipping_)
      input_ += part;
    if (end == std::string_view::npos)
      return;
    if (!skipping_)
      lines.push_back({std::move(input_), false});
    input_.clear();
    skipping_ = false;
  }
}

std::vector<Connection::Line> Connection::read() {
  std::vector<Line> lines;
  char bytes[kReadBytes];
  ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (got > 0)
    split({bytes, size_t(got)}, lines);
  else if (got == 0) {
    ended_ = true;
    if (!input_.empty()) // the end of a line like a newline
      lines.push_back({std::exchange(input_, {}), false});
  } else if (errno != EAGAIN && errno != EINTR)
    broken_ = true;
  return lines;
}

void Connection::write(std::string_view line) {
  if (broken_)
    return;
  if (output_.size() - written_ + line.size() > kMostOutputBytes) {
    broken_ = true;
    return;
  }
  output_ += line;
  flush();
}

void Connection::flush() {
  while (!broken_ && hasOutput()) {
    ssize_t sent = ::send(socket_.get(), output_.data() + written_,
                          output_.size() - written_, MSG_NOSIGNAL);
    if (sent >= 0)
      written_ += size_t(sent);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      broken_ = true;
  }
  // What was written goes once it is as much as what was not.
  if (written_ >= output_.size() - written_) {
    output_.erase(0, written_);
    written_ = 0;
  }
}

} // namespace grok::serve
