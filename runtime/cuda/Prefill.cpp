#include "runtime/cuda/Prefill.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/PrefillMemory.h"

#define RETURN_IF_ERROR(expression)                                            \
  if (absl::Status status_ = (expression); !status_.ok())                      \
  return status_

namespace grok::cuda {
namespace {

/// Panels that a block multiplies in a sample of the matrix rate: about a
/// millisecond.
constexpr uint32_t kRateSteps = 2048, kRateSamples = 9, kRateLaunches = 8;

/// Bytes from a matrix's extent to its first fragment of a tile.
abi::TilePlace placeOf(const PlanMatrix &matrix, const SlotExtent &extent,
                       uint32_t tile, uint64_t layerStride) {
  uint32_t group = tile / kGroupTiles;
  abi::TilePlace place{};
  place.offset = extent.offset +
                 uint64_t(group) * kGroupTiles * matrix.steps * kFragmentBytes;
  place.layerStride = layerStride;
  place.groupTiles =
      std::min(kGroupTiles, extent.tileCount - group * kGroupTiles);
  place.inGroup = tile % kGroupTiles;
  return place;
}

} // namespace

absl::StatusOr<std::unique_ptr<Prefill>> Prefill::load(const DriverApi &api,
                                                       const Bundle &bundle,
                                                       uint32_t smCount,
                                                       uint32_t sharedLimit) {
  std::unique_ptr<Prefill> prefill(new Prefill(
      api, bundle.model(), bundle.plan(), bundle.manifest().sm, smCount));
  const bool waits = bundle.manifest().formatVersion >= kOverlapFormatVersion;
  prefill->overlaps_ = waits && prefill->sm_ >= 90 && api.launchKernelEx;
  RETURN_IF_ERROR(prefill->loadKernels(bundle, sharedLimit));
  RETURN_IF_ERROR(prefill->loadPlaces());
  return prefill;
}

absl::Status Prefill::loadKernels(const Bundle &bundle, uint32_t sharedLimit) {
  if (sharedLimit < plan_.prefill.sharedBytes)
    return absl::FailedPreconditionError(absl::StrCat(
        bundle.path(), ": prefill needs ", plan_.prefill.sharedBytes,
        " bytes of shared memory per block, the GPU has ", sharedLimit,
        "; retarget it"));
  absl::StatusOr<std::string> ptx = bundle.readFile(kPrefillFile);
  if (!ptx.ok())
    return ptx.status();
  absl::StatusOr<ModuleOwner> module = ModuleOwner::load(
      api_, *ptx, absl::StrCat(bundle.path(), "/", kPrefillFile));
  if (!module.ok())
    return module.status();
  module_ = *std::move(module);
  const uint32_t product = productThreads(sm_),
                 stages = plan_.prefill.sharedBytes;
  struct Wanted {
    Kernel *kernel;
    const char *name;
    uint32_t threads;
    uint64_t shared;
  };
  std::vector<Wanted> wanted = {
      {&embed_, "embed", kTokenThreads, kTokenSharedBytes},
      {&group_, "group", kGroupThreads, groupSharedBytes(model_.numExperts)},
      {&qkv_, "qkv", product, stages},
      {&attend_, "attend", kAttentionThreads,
       plan_.activations == Activations::kSplit
           ? 0
           : attentionSharedBytes(1, model_.headDim)},
      {&attnOut_, "attn_out", product, stages},
      {&addAttn_, "add_attn", kTokenThreads, kTokenSharedBytes},
      {&gateUp_, "gate_up", product, stages},
      {&down_, "down", product, stages},
      {&addMoe_, "add_moe", kTokenThreads, kTokenSharedBytes},
      {&addLast_, "add_last", kTokenThreads, kTokenSharedBytes},
      {&gather_, "gather", kTokenThreads, kTokenSharedBytes},
      {&head_, "head", product, stages},
      {&choose_, "choose", kGroupThreads, kChooseSharedBytes},
      {&rate_, "rate", product, stages},
  };
  if (model_.hash) {
    wanted.push_back({&hash_, "hash", kTokenThreads, 0});
  } else {
    wanted.push_back({&score_, "score", kTokenThreads,
                      routerSharedBytes(model_.numExperts)});
    wanted.push_back({&pick_, "pick", kTokenThreads, 0});
    wanted.push_back({&sort_, "sort", kTokenThreads, 0});
  }
  if (model_.denseWidth > 0) {
    wanted.push_back({&denseGateUp_, "dense_gate_up", product, stages});
    wanted.push_back({&denseDown_, "dense_down", product, stages});
  }
  for (const Wanted &w : wanted) {
    absl::StatusOr<Function> function =
        module_.function(absl::StrCat("grok_prefill_", w.name).c_str());
    if (!function.ok())
      return function.status();
    *w.kernel = {*function, w.threads, uint32_t(w.shared)};
    GROK_CUDA_RETURN_IF_ERROR(api_, functionSetAttribute, *function,
                              kFunctionDynamicShared, int(w.shared));
  }
  return absl::OkStatus();
}

/// Slots don't show here: a tile of the output takes rows of several.
absl::Status Prefill::loadPlaces() {
  std::vector<abi::TilePlace> places;
  for (const PlanMatrix &matrix : plan_.matrices) {
    size_t first = places.size();
    places.resize(first + matrix.tiles);
    for (uint32_t slot = 0; slot != plan_.slots; ++slot) {
      const SlotExtent &extent = matrix.slots[slot];
      for (uint32_t tile = 0; tile != extent.tileCount; ++tile) {
        abi::TilePlace &place = places[first + extent.tileBegin + tile];
        place =
            placeOf(matrix, extent, tile, plan_.banks[extent.bank].layerStride);
        if (matrix.kind == MatrixKind::kHead && !plan_.embedding.empty())
          place.embedding = plan_.embedding[slot].offset +
                            uint64_t(tile) * kTileRows * model_.hiddenSize * 2;
      }
    }
  }
  absl::StatusOr<DeviceBuffer> taken =
      DeviceBuffer::allocate(api_, places.size() * sizeof(abi::TilePlace));
  if (!taken.ok())
    return taken.status();
  places_ = *std::move(taken);
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice, places_.address(),
                            places.data(), places_.bytes());
  return absl::OkStatus();
}

absl::Status Prefill::launch(const Kernel &kernel, uint32_t blocks,
                             abi::PrefillParams &params) {
  void *arguments[] = {&params};
  if (overlaps_) {
    LaunchAttribute overlaps{kLaunchOverlaps, 0, {1}};
    const LaunchConfig config{{blocks, 1, 1}, {kernel.threads, 1, 1},
                              kernel.shared,  nullptr,
                              &overlaps,      1};
    GROK_CUDA_RETURN_IF_ERROR(api_, launchKernelEx, &config, kernel.function,
                              arguments, nullptr);
    return absl::OkStatus();
  }
  GROK_CUDA_RETURN_IF_ERROR(api_, launchKernel, kernel.function, blocks, 1, 1,
                            kernel.threads, 1, 1, kernel.shared, nullptr,
                            arguments, nullptr);
  return absl::OkStatus();
}

uint32_t Prefill::attentionBlocks(uint32_t tokens) const {
  if (plan_.activations == Activations::kSplit) // a warp a query head
    return ceilDiv(tokens * model_.numHeads, kAttentionThreads / 32);
  uint32_t ofBlock = kAttentionRows / (model_.numHeads / model_.numKvHeads);
  return ceilDiv(tokens, ofBlock) * model_.numKvHeads;
}

/// A learned router's choice in one layer, and the tokens sorted by it.
absl::Status Prefill::route(abi::PrefillParams &params) {
  RETURN_IF_ERROR(
      launch(score_, ceilDiv(params.tokens, kRouterTokens), params));
  RETURN_IF_ERROR(
      launch(pick_, ceilDiv(params.tokens, kTokenThreads / 32), params));
  RETURN_IF_ERROR(launch(group_, 1, params));
  return launch(sort_, params.tokens, params);
}

absl::Status Prefill::layer(abi::PrefillParams &params) {
  RETURN_IF_ERROR(launch(qkv_, smCount_, params));
  RETURN_IF_ERROR(launch(attend_, attentionBlocks(params.tokens), params));
  RETURN_IF_ERROR(launch(attnOut_, smCount_, params));
  RETURN_IF_ERROR(launch(addAttn_, params.tokens, params));
  if (!model_.hash)
    RETURN_IF_ERROR(route(params));
  RETURN_IF_ERROR(launch(gateUp_, smCount_, params));
  RETURN_IF_ERROR(launch(down_, smCount_, params));
  if (model_.denseWidth > 0) {
    RETURN_IF_ERROR(launch(denseGateUp_, smCount_, params));
    RETURN_IF_ERROR(launch(denseDown_, smCount_, params));
  }
  bool last = params.layer + 1 == model_.numLayers;
  return launch(last ? addLast_ : addMoe_, params.tokens, params);
}

absl::Status Prefill::run(abi::PrefillParams params,
                          std::span<const abi::PrefillToken> tokens) {
  params.tokens = uint32_t(tokens.size());
  GROK_CUDA_RETURN_IF_ERROR(api_, copyToDevice,
                            DevicePtr(params.arena) +
                                plan_.findRegion("prefill_tokens")->offset,
                            tokens.data(), tokens.size_bytes());
  if (model_.hash) { // for all layers
    RETURN_IF_ERROR(
        launch(hash_, ceilDiv(params.tokens, kTokenThreads), params));
    RETURN_IF_ERROR(launch(group_, 1, params));
  }
  RETURN_IF_ERROR(launch(embed_, params.tokens, params));
  for (params.layer = 0; params.layer != model_.numLayers; ++params.layer)
    RETURN_IF_ERROR(layer(params));
  return absl::OkStatus();
}

absl::Status Prefill::head(abi::PrefillParams params) {
  RETURN_IF_ERROR(launch(gather_, params.headCount, params));
  RETURN_IF_ERROR(launch(head_, smCount_, params));
  return params.chooses ? launch(choose_, params.headCount, params)
                        : absl::OkStatus();
}

absl::StatusOr<double> Prefill::matrixRate(abi::PrefillParams params) {
  params.rateSteps = kRateSteps;
  const double operations = 2.0 * kTileHeight * plan_.prefill.tileTokens *
                            kPanelK * kRateSteps * smCount_ * kRateLaunches *
                            (plan_.activations == Activations::kSplit ? 2 : 1);
  std::vector<double> rates;
  for (uint32_t sample = 0; sample <= kRateSamples; ++sample) {
    auto begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i != kRateLaunches; ++i)
      RETURN_IF_ERROR(launch(rate_, smCount_, params));
    GROK_CUDA_RETURN_IF_ERROR(api_, contextSynchronize);
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - begin;
    if (sample) // the first one warms up
      rates.push_back(operations / took.count());
  }
  std::nth_element(rates.begin(), rates.begin() + kRateSamples / 2,
                   rates.end());
  return rates[kRateSamples / 2];
}

} // namespace grok::cuda
