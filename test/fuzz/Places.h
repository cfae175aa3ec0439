// Where a checkpoint's tensors lie, checked apart from the readers.
#pragma once

#include <algorithm>

#include "runtime/checkpoint/StoredTensor.h"
#include "test/fuzz/Fuzz.h"

namespace grok::fuzz {

/// The last element of a tensor, and the last of its scales, lie in the file.
inline void requireInside(const StoredTensor &tensor, size_t fileBytes) {
  if (std::ranges::find(tensor.shape, 0u) != tensor.shape.end())
    return;                       // no element at all
  using Wide = unsigned __int128; // nothing here can overflow it
  Wide elements = 1, last = 0, rowMajor = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    last += Wide(tensor.shape[i] - 1) *
            (tensor.strides.empty() ? rowMajor : Wide(tensor.strides[i]));
    rowMajor *= tensor.shape[i];
    elements *= tensor.shape[i];
    require(elements <= UINT64_MAX && last < UINT64_MAX,
            "a tensor's elements can be counted");
  }
  for (const StoredTensor::Part &part : tensor.parts) {
    Wide end = Wide(part.offset) + storedBytes(tensor, uint64_t(last) + 1);
    require(end <= fileBytes, "a tensor lies inside its file");
  }
  if (tensor.coding != StoredTensor::Coding::kScaled)
    return;
  size_t rank = tensor.shape.size();
  require(rank >= 2 && tensor.scaleBlocks &&
              tensor.shape[rank - 1] % tensor.scaleBlocks == 0,
          "blocks of scales divide the columns");
  Wide scales = elements / tensor.shape[rank - 1] * tensor.scaleBlocks;
  require(Wide(tensor.scales.offset) + scales * sizeof(uint16_t) <= fileBytes,
          "a tensor's scales lie inside its file");
}

} // namespace grok::fuzz
