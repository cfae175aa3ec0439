// What both forms of a product share: its sizes, the ring of stages, the tiles
// of W's rows, and which tile comes next.
#pragma once

#include "codegen/Device/prefill/chunk.h"
#include "codegen/Device/prefill/tiles.h"

namespace grok::device {

/// A block of a product; kRing stages of kRingBytes.
template <class Pass, class Job, uint32_t kRing, uint32_t kRingBytes>
struct ProductCommon {
  using Model = typename Pass::Model;
  using Plan = typename Pass::Plan;
  static constexpr uint32_t kPlanes = Plan::kPlanes;
  static constexpr uint32_t kRowTiles =
      (Job::kRows + kTileRows - 1) / kTileRows;
  static constexpr uint32_t kRowBlocks =
      (kRowTiles + kTileHeightTiles - 1) / kTileHeightTiles;
  static constexpr uint32_t kSteps = (Job::kK + kTileK - 1) / kTileK;
  static constexpr uint32_t kPanels = (kSteps + 1) / 2;
  static constexpr uint32_t kPlaneBytes = Plan::kTileTokens * kPanelBytes;
  static constexpr uint64_t kOperandPlane =
      operandBytes(Job::kOperandStride, Job::kK, 1);
  static constexpr uint32_t kStageRoom = Pass::kShape.stageBytes();
  static_assert(kRing >= 2 && kRing * kRingBytes <= Plan::kStages * kStageRoom);
  static_assert(16 * kRing + 24 <= 32 * Plan::kStages);

  Pass &pass;
  uint32_t base; // shared address of stage 0
  uint32_t stage = 0, parity = 0;
  uint32_t staged = 0; // chunks of sums so far

  GROK_DEVICE explicit ProductCommon(Pass &pass)
      : pass(pass),
        base((uint32_t((__UINTPTR_TYPE__)grokShared) + kStageAlign - 1) /
             kStageAlign * kStageAlign) {}

  GROK_DEVICE uint32_t full(uint32_t s) const {
    return base + Plan::kStages * kStageRoom + 8 * s;
  }
  GROK_DEVICE uint32_t empty(uint32_t s) const { return full(kRing + s); }
  /// Of the number of the next tile, and that number.
  GROK_DEVICE uint32_t told() const { return full(2 * kRing); }
  GROK_DEVICE uint32_t heard() const { return full(2 * kRing + 1); }
  GROK_DEVICE uint32_t next() const { return full(2 * kRing + 2); }
  /// Of the two chunks of sums.
  GROK_DEVICE uint32_t chunks() const {
    return base + Plan::kStages * (kStageRoom + 32);
  }

  GROK_DEVICE void advance() {
    bool wraps = ++stage == kRing;
    stage = wraps ? 0 : stage;
    parity ^= wraps ? 1 : 0;
  }
  GROK_DEVICE static void await(uint32_t barrier, uint32_t parity) {
    while (!ptx::mbarrierTest<Plan::kSm>(barrier, parity)) {
    }
  }
  /// Says that the warp has read stage s.
  GROK_DEVICE void release(uint32_t s) {
    ptx::warpSync();
    ptx::mbarrierArriveIf(pass.lane() == 0, empty(s));
  }

  /// `loads`: threads that arrive when a stage has been loaded.
  GROK_DEVICE void initialise(uint32_t loads) {
    if (pass.tid == 0) {
      for (uint32_t s = 0; s < kRing; ++s) {
        ptx::mbarrierInit(full(s), loads);
        ptx::mbarrierInit(empty(s), kProductWarps);
      }
      ptx::mbarrierInit(told(), 1);
      ptx::mbarrierInit(heard(), kProductWarps);
      if constexpr (Plan::kSm >= 90)
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    ptx::barSync(0, productThreads(Plan::kSm));
  }

  /// One tile of 8 rows of W.
  struct RowTile {
    const uint8_t *group; // first fragment of its group
    uint32_t groupTiles, inGroup;

    /// Fragments of the panel: its steps side by side.
    GROK_DEVICE const uint8_t *panel(uint32_t panel) const {
      if constexpr (kSteps <= Plan::kBlockSteps)
        return group + (inGroup * kSteps + panel * 2) * kFragmentBytes;
      uint32_t step = panel * 2, inBlock = step % Plan::kBlockSteps,
               before = step - inBlock, left = kSteps - before,
               here = left < Plan::kBlockSteps ? left : Plan::kBlockSteps;
      return group +
             (uint64_t(groupTiles) * before + inGroup * here + inBlock) *
                 kFragmentBytes;
    }
  };
  /// Past the matrix the first one: what comes of it is not stored.
  GROK_DEVICE RowTile rowTile(const ProductTile &tile, uint32_t i) const {
    uint32_t t = tile.rowTile + i;
    const abi::TilePlace place = tile.places[t < kRowTiles ? t : 0];
    return {pass.params.weights + place.offset +
                (Job::kLayered ? pass.params.layer * place.layerStride : 0),
            place.groupTiles, place.inGroup};
  }

  /// Which of the tiles is the block's turn.
  struct Turn {
    typename Job::template Tiles<kRowBlocks> tiles;
    uint32_t number, parity;

    GROK_DEVICE bool any() const { return number < tiles.count; }
    GROK_DEVICE ProductTile tile(Pass &pass) const {
      return tiles.at(pass, number);
    }
  };
  GROK_DEVICE Turn firstTile() const {
    return {typename Job::template Tiles<kRowBlocks>(pass), ptx::ctaid(), 0};
  }

  /// The next one, for the loading warp, which tells the others.
  GROK_DEVICE void take(Turn &turn) {
    if constexpr (Job::kShared)
      takeShared(turn);
    else
      turn.number += ptx::nctaid();
  }
  /// The next one, for a warp that multiplies.
  GROK_DEVICE void hear(Turn &turn) {
    if constexpr (Job::kShared)
      hearShared(turn);
    else
      turn.number += ptx::nctaid();
  }

private:
  GROK_DEVICE void takeShared(Turn &turn) {
    uint32_t i = 0;
    if (pass.lane() == 0)
      i = ptx::nctaid() + ptx::fetchAdd(Job::counter(pass), 1);
    turn.number = ptx::shuffle(i, 0);
    await(heard(), turn.parity ^ 1);
    if (pass.lane() == 0) {
      ptx::storeShared(next(), turn.number);
      ptx::mbarrierArrive(told());
    }
    ptx::warpSync();
    turn.parity ^= 1;
  }
  GROK_DEVICE void hearShared(Turn &turn) {
    await(told(), turn.parity);
    uint32_t i[1];
    ptx::loadSharedWords(next(), i);
    ptx::warpSync();
    ptx::mbarrierArriveIf(pass.lane() == 0, heard());
    turn.number = i[0];
    turn.parity ^= 1;
  }
};

} // namespace grok::device
