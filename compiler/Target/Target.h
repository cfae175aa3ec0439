// A part that code is compiled for, as targets/*.json describe it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace grok {

/// A point of the curve of bandwidth over streaming SMs, both as shares of the
/// whole.
struct StreamPoint {
  double sms = 0;
  double rate = 0;
  bool operator==(const StreamPoint &) const = default;
};

struct Target {
  std::string name;
  std::string source;     // where the numbers come from
  uint32_t sm = 0;        // 80, 90; 0: cpu
  std::string arch;       // "sm_80", "sm_90a"; empty for cpu
  std::string ptxVersion; // "8.0"; empty for cpu
  uint32_t minDriver = 0; // CUDA driver API version, e.g. 12000; 0 for cpu
  uint32_t smCount = 0;   // for cpu: slots
  uint32_t sharedBytesPerBlock = 0;
  uint64_t memoryBytes = 0;
  uint64_t l2Bytes = 0;
  double bandwidthGbS = 0; // by the datasheet, 10^9 bytes a second
  double clockMhz = 0;     // the SM clock that plans are made for
  uint32_t bankCount = 0;
  uint64_t bankAlign = 0; // bytes, a power of two
  double handOverUs =
      0; // a vector from all slots to all slots, memory otherwise idle
  double handOverStreamUs = 0; // the same beside a saturated weight stream
  double launchUs = 0;         // launch and wait, median
  double launchMaxUs = 0;      // and the worst seen
  double streamEfficiency =
      0; // share of bandwidthGbS that a stream from all slots reaches
  std::vector<StreamPoint> streamCurve; // ascending, ends at {1, 1}
  double sharedBytesPerCycle =
      0; // what matrix work reads from shared memory, a slot

  bool isCpu() const { return sm == 0; }
  bool operator==(const Target &) const = default;

  /// Bytes a second that a stream from `slots` of the slots reaches: the curve,
  /// linear between its points.
  double streamBytesPerSecond(uint32_t slots) const;

  /// PTX version as LLVM's feature has it: 80 for "8.0"; 0 for cpu.
  uint32_t ptxNumber() const;

  /// Canonical JSON: sorted keys, shortest exact numbers, a line a key.
  /// parseTarget reads it back.
  std::string toJson() const;
};

/// Every field is required, none is unknown, each in its range: InvalidArgument
/// "FILE:LINE: key 'x': ..." if not.
absl::StatusOr<Target> parseTarget(std::string_view text,
                                   std::string_view file);

/// A shipped target by name, or a description by file (anything with a '/' or
/// that ends in ".json"). InvalidArgument if `nameOrFile` is empty, NotFound if
/// it is neither; both list the shipped ones.
absl::StatusOr<Target> findTarget(const std::string &nameOrFile);

/// Names of the shipped targets, sorted.
std::vector<std::string> shippedTargets();

} // namespace grok
