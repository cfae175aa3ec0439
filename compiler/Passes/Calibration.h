// The constants of the prediction that no target's description holds. They are
// fitted to measurements on one H200; docs/dialects/rationale-plan.md says to
// which, docs/latency.md how well they meet them.
#pragma once

namespace grok::plan::calibration {

/// A hand-over of a kernel for a batch, whose warps wait for each other, in
/// hand-overs of a kernel for one row; and what each row adds to it, whose
/// words all slots read.
inline constexpr double kBatchHandOver = 1.07, kRowHandOver = 0.155;

/// Weights of 8 bits are unpacked: bytes that a slot's instructions get through
/// in a cycle.
inline constexpr double kInt8BytesPerCycle = 17, kFp8BytesPerCycle = 16;

/// Shares of what the tensor cores could do, in prefill: many tiles of a
/// product together, one tile, and attention.
inline constexpr double kProductShare = 0.49, kTileShare = 0.5,
                        kAttentionShare = 0.17;
/// Until a tile's first products begin: loads that wait for each other.
inline constexpr double kTileStartUs = 1.5;
/// Between two launches in a row, however short they are.
inline constexpr double kPrefillLaunchUs = 2;
/// Round trips to the memory for each part of a row that the router's product
/// stages: one after the other, with nothing beside them.
inline constexpr double kRouterTrips = 2;

} // namespace grok::plan::calibration
