// The prefill kernels of a bundle: what a pass launches, and in which order.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/KernelAbi.h"
#include "runtime/cuda/Resources.h"

namespace grok::cuda {

class Prefill {
public:
  /// prefill.ptx of a bundle that has it, and the table of tile places.
  static absl::StatusOr<std::unique_ptr<Prefill>> load(const DriverApi &api,
                                                       const Bundle &bundle,
                                                       uint32_t smCount,
                                                       uint32_t sharedLimit);

  /// Computes a pass over `tokens`: their keys and values, and their residual
  /// stream. `params` has what does not change from launch to launch.
  absl::Status run(abi::PrefillParams params,
                   std::span<const abi::PrefillToken> tokens);
  /// After a pass: the logits of params.headCount of its tokens, and with
  /// params.chooses the ids that follow.
  absl::Status head(abi::PrefillParams params);
  /// Floating-point operations a second of the products' inner loop.
  absl::StatusOr<double> matrixRate(abi::PrefillParams params);

  uint64_t memoryBytes() const { return places_.bytes(); }
  const abi::TilePlace *places() const {
    return places_.as<const abi::TilePlace>();
  }

private:
  struct Kernel {
    Function function = nullptr;
    uint32_t threads = 0, shared = 0;
  };

  Prefill(const DriverApi &api, const ModelConfig &model,
          const PlanTables &plan, uint32_t sm, uint32_t smCount)
      : api_(api), model_(model), plan_(plan), sm_(sm), smCount_(smCount) {}

  absl::Status loadKernels(const Bundle &bundle, uint32_t sharedLimit);
  absl::Status loadPlaces();
  absl::Status launch(const Kernel &kernel, uint32_t blocks,
                      abi::PrefillParams &params);
  absl::Status layer(abi::PrefillParams &params);
  absl::Status route(abi::PrefillParams &params);
  uint32_t attentionBlocks(uint32_t tokens) const;

  const DriverApi &api_;
  const ModelConfig model_;
  const PlanTables plan_;
  const uint32_t sm_, smCount_;
  bool overlaps_ = false; // a launch may start before the one before has ended
  ModuleOwner module_;
  DeviceBuffer places_;
  Kernel embed_, hash_, score_, pick_, group_, sort_, qkv_, attend_, attnOut_,
      addAttn_, gateUp_, down_, denseGateUp_, denseDown_, addMoe_, addLast_,
      gather_, head_, choose_, rate_;
};

} // namespace grok::cuda
