// A stand-in for libcuda: host memory stands for the device's, a launch of
// grok_decode reports a plausible end, and if it is asked for them steps of
// 100, 101, 102, 103, 100, ... microseconds with 3 experts; a traced one that
// slot 0 waits 10 us of a qkv of 30 us. One that stays is a thread of its own,
// beside which calls that wait for the device fail. What the device claims to
// be, and what goes wrong, are settings; what is held and what was asked for is
// recorded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/bundle/KernelAbi.h"

namespace grok::test {

struct FakeCuda {
  // What the device is. GROK_FAKE_CUDA="sm_count=8,devices=0" sets these too.
  int driverVersion = 12080, devices = 1, major = 9, minor = 0, smCount = 132;
  int sharedBytes = 232448, cooperative = 1;
  int64_t memoryMegabytes = 1 << 17, freeMegabytes = 1 << 17;

  // What goes wrong.
  int failAt = 0;     // the call to fail, counted from 1; calls that give
                      // something back don't count
  int failWith = 999; // and its result
  int failFrees =
      0; // calls that give something back do so, but report failWith
  int jitResult = 0;        // of loading a module with decode kernels
  int watchdog = 0;         // decode ends with a watchdog's record
  int silent = 0;           // decode ends without reporting
  uint32_t extraLength = 0; // ids that decode reports beyond the limit
  int timeless = 0;         // steps are not noted
  int old = 0;              // decode is one of bundle format 4
  int turnMs = 0;           // milliseconds that decode takes a turn
  int unended = 0;          // every slot's trace lacks its last entry

  // What happened.
  int calls = 0;
  char failed[64] = ""; // the call that failed
  int contexts = 0, modules = 0, allocations = 0, hostAllocations = 0;
  int64_t bytes = 0;                                   // of allocations
  int decodes = 0, fills = 0, streams = 0, clears = 0; // launches, and memsets
  int turns = 0;                                       // of decode
  abi::DecodeParams lastDecode{};
  abi::Turn lastTurn{};
  abi::StreamParams lastStream{};
  size_t lastClear = 0; // bytes

  // Logits that decode writes: value v of row b at position p is 1000 b + p + v
  // / 1024.
  uint64_t logitsOffset = 0;
  uint32_t vocab = 0;

  int live() const {
    return contexts + modules + allocations + hostAllocations;
  }
};

} // namespace grok::test

extern "C" grok::test::FakeCuda *grokFakeCuda();
