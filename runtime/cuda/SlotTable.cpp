#include "runtime/cuda/SlotTable.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace grok::cuda {
namespace {

/// Each block writes its SM's number. Written by hand: it must load on every
/// driver that loads a bundle.
const std::string kSmIdPtx = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry read_smid(.param .u64 out)
{
  .reg .u32 %r<3>;
  .reg .u64 %d<4>;
  ld.param.u64 %d0, [out];
  cvta.to.global.u64 %d1, %d0;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %smid;
  mul.wide.u32 %d2, %r0, 4;
  add.s64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r1;
  ret;
}
)";

} // namespace

absl::StatusOr<std::vector<uint32_t>>
readSmIds(const DriverApi &api, uint32_t smCount, uint32_t sharedBytes) {
  absl::StatusOr<ModuleOwner> module =
      ModuleOwner::load(api, kSmIdPtx, "read_smid");
  if (!module.ok())
    return module.status();
  absl::StatusOr<Function> kernel = module->function("read_smid");
  if (!kernel.ok())
    return kernel.status();
  absl::StatusOr<DeviceBuffer> out =
      DeviceBuffer::allocate(api, smCount * sizeof(uint32_t));
  if (!out.ok())
    return out.status();
  // As much shared memory as a block may have, so that no two blocks share an
  // SM.
  GROK_CUDA_RETURN_IF_ERROR(api, functionSetAttribute, *kernel,
                            kFunctionDynamicShared, int(sharedBytes));
  DevicePtr address = out->address();
  void *parameters[] = {&address};
  GROK_CUDA_RETURN_IF_ERROR(api, launchCooperative, *kernel, smCount, 1, 1, 32,
                            1, 1, sharedBytes, nullptr, parameters);
  std::vector<uint32_t> ids(smCount);
  GROK_CUDA_RETURN_IF_ERROR(api, copyToHost, ids.data(), address,
                            smCount * sizeof(uint32_t));
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) != ids.end())
    return absl::InternalError(
        "two blocks of one cooperative launch ran on the same SM");
  return ids;
}

absl::StatusOr<std::vector<uint32_t>>
slotTable(const std::vector<uint32_t> &smIds, uint32_t slots, uint32_t shift) {
  if (smIds.size() < slots)
    return absl::FailedPreconditionError(
        absl::StrFormat("the bundle was compiled for %d SMs, the GPU has %d; "
                        "retarget it with grokc retarget",
                        slots, smIds.size()));
  std::vector<uint32_t> table(smIds.back() + 1, ~0u);
  for (uint32_t slot = 0; slot < slots; ++slot)
    table[smIds[(uint64_t(slot) + shift) % smIds.size()]] = slot;
  return table;
}

} // namespace grok::cuda
