#include "tools/grokrun/serve/Encoder.h"

#include <utility>

#include "runtime/bundle/SignalsBlocked.h"

namespace grok::serve {

Encoder::Encoder(const grokrun::Tokenizer *tokenizer, Outbox &outbox)
    : tokenizer_(tokenizer), outbox_(outbox) {
  SignalsBlocked blocked;
  thread_ = std::thread([this] { work(); });
}

Encoder::~Encoder() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Encoder::add(uint64_t client, uint64_t request, std::string text) {
  std::lock_guard lock(mutex_);
  waiting_[client].push_back({request, std::move(text)});
  changed_.notify_all();
}

void Encoder::drop(uint64_t client, uint64_t request) {
  std::lock_guard lock(mutex_);
  auto found = waiting_.find(client);
  if (found == waiting_.end())
    return;
  std::erase_if(found->second,
                [&](const Text &text) { return text.request == request; });
  if (found->second.empty())
    waiting_.erase(found);
}

/// The oldest text of the client whose turn it is.
Encoder::Text Encoder::next() {
  auto turn = waiting_.upper_bound(last_);
  if (turn == waiting_.end())
    turn = waiting_.begin();
  last_ = turn->first;
  Text text = std::move(turn->second.front());
  turn->second.pop_front();
  if (turn->second.empty())
    waiting_.erase(turn);
  return text;
}

void Encoder::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_)
      return;
    const Text text = next();
    lock.unlock();
    outbox_.post({text.request, {}, {}, tokenizer_->encode(text.text)});
    lock.lock();
  }
}

} // namespace grok::serve
