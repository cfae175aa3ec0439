// One client's socket, which never blocks: lines that came in, lines that wait
// to go out, both bounded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/grokrun/serve/Descriptor.h"

namespace grok::serve {

/// Bytes that wait for a client to read them, at most.
inline constexpr size_t kMostOutputBytes = 4 << 20;

class Connection {
public:
  /// The socket is made non-blocking.
  explicit Connection(Descriptor socket);

  struct Line {
    std::string text;
    bool tooLong = false; // more than kMostLineBytes; `text` is empty
  };
  /// Takes what there is to read, a part of it if it is much, and returns the
  /// lines that are complete. What a client sends last is a line without a
  /// newline, too.
  std::vector<Line> read();
  /// Puts a line into the buffer and writes what the socket takes.
  void write(std::string_view line);
  /// Writes what the socket takes.
  void flush();
  /// The other side is gone.
  void fail() { broken_ = true; }

  int descriptor() const { return socket_.get(); }
  /// The client sends no more, but may still read.
  bool ended() const { return ended_; }
  /// Nothing can be written any more: the client has gone, or has not read
  /// for so long that the buffer is full.
  bool broken() const { return broken_; }
  bool hasOutput() const { return written_ != output_.size(); }

private:
  void split(std::string_view bytes, std::vector<Line> &lines);

  Descriptor socket_;
  std::string input_;     // of the line that is not complete
  bool skipping_ = false; // the rest of a line that was too long
  std::string output_;
  size_t written_ = 0; // of it
  bool ended_ = false, broken_ = false;
};

} // namespace grok::serve
