// Texts to ids, on a thread of their own: a long one takes longer than others'
// lines may wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tools/grokrun/Tokenizer.h"
#include "tools/grokrun/serve/Outbox.h"

namespace grok::serve {

class Encoder {
public:
  /// Both must outlive it. Nothing may be added where `tokenizer` is null.
  Encoder(const grokrun::Tokenizer *tokenizer, Outbox &outbox);
  /// Waits for the text that is being encoded; the others are forgotten.
  ~Encoder();
  Encoder(const Encoder &) = delete;

  /// The ids, or why there are none, come to the outbox as an event of
  /// `request`. Clients take turns, a text each.
  void add(uint64_t client, uint64_t request, std::string text);
  /// Forgets a text that is not begun.
  void drop(uint64_t client, uint64_t request);

private:
  struct Text {
    uint64_t request;
    std::string text;
  };

  void work();
  Text next();

  const grokrun::Tokenizer *tokenizer_;
  Outbox &outbox_;

  std::mutex mutex_; // for everything below
  std::condition_variable changed_;
  std::map<uint64_t, std::deque<Text>> waiting_; // by client; none is empty
  uint64_t last_ = 0;                            // client that had its turn
  bool ending_ = false;

  std::thread thread_; // last: it uses the others
};

} // namespace grok::serve
