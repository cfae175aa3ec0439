// Which slot of the plan each SM takes, decided once at load.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/cuda/Resources.h"

namespace grok::cuda {

/// The %smid of every SM, ascending, read on the device by one resident block
/// per SM. PTX does not promise that the numbers are contiguous.
absl::StatusOr<std::vector<uint32_t>>
readSmIds(const DriverApi &api, uint32_t smCount, uint32_t sharedBytes);

/// Table by %smid: slot i belongs to SM number i + shift in ascending order,
/// past the last one from the first again; ~0u for SMs beyond the slots.
/// FailedPrecondition when there are fewer SMs than slots.
absl::StatusOr<std::vector<uint32_t>>
slotTable(const std::vector<uint32_t> &smIds, uint32_t slots,
          uint32_t shift = 0);

} // namespace grok::cuda
