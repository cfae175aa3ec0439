// What the blocks of the decode kernel do, reduced to what they wait for and
// what they hand over. A block is two processes: its consumer warps, which are
// one here because every word that a block publishes lies behind a barrier
// after the waits of all its warps, and its producer warp.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/bundle/DecodeMemory.h"

namespace grok::handovers {

/// 64-bit words [begin, end), counted from the arena's start. Each block has
/// some more behind the arena, which stand for what it has in shared memory.
struct WordRange {
  uint64_t begin, end;
  auto operator<=>(const WordRange &) const = default;
};

/// How far a consumer goes in its ring: waits for chunks below `await`, then
/// gives back those below `release`. Counted from the chunk that the op begins
/// with.
struct RingMove {
  uint32_t await, release;
};

/// What a part of a slot's stream is. `row`, `head`, `block`, `value`: of the
/// KV cache.
struct StreamItem {
  enum Kind : uint32_t { kMatrix, kCache } kind;
  uint32_t step, layer;
  uint32_t matrix; // index in the plan
  uint32_t row, head, block, value;
  uint64_t bytes;
  bool operator==(const StreamItem &) const = default;
};

enum class OpKind : uint32_t {
  kAwait,   // all of `words` carry `epoch`
  kPublish, // `words` get `epoch`
  kAhead,   // waits for the first of what the next kTake with items takes
  kTake,    // `moves` through the ring; `items` is what they go through, none
            // where a product goes on
  kFence,   // ordinary stores before it are seen by whoever sees later words
  kPush     // `items` into the ring
};

struct Op {
  OpKind kind;
  Phase phase;
  uint32_t step, layer;
  uint32_t epoch = 0;
  std::vector<WordRange> words = {};
  std::vector<StreamItem> items = {};
  std::shared_ptr<const std::vector<RingMove>> moves = {};
  bool storesKv = false;     // of kPublish: also stores into the KV cache
  uint32_t seesStep = kNone; // of kPush: streams KV entries up to this step's

  static constexpr uint32_t kNone = ~0u;
};

struct Process {
  uint32_t slot;
  std::vector<Op> ops;
};

/// A place in a process.
struct OpRef {
  uint32_t process, op;
  bool operator==(const OpRef &) const = default;
};

} // namespace grok::handovers
