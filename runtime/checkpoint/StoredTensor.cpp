#include "runtime/checkpoint/StoredTensor.h"

#include "absl/strings/str_cat.h"

namespace grok {

uint64_t storedBytes(const StoredTensor &tensor, uint64_t elements) {
  if (tensor.coding == StoredTensor::Coding::kBlocks)
    return elements / kBlockElements * kBlockBytes;
  return elements * (elementBits(tensor.type) / 8);
}

StoredTensor sliceOf(const StoredTensor &tensor, uint64_t index) {
  StoredTensor slice = tensor;
  uint64_t rows = tensor.shape[1], columns = tensor.shape[2];
  uint64_t stride = tensor.strides.empty() ? rows * columns : tensor.strides[0];
  slice.parts[0].offset += storedBytes(tensor, index * stride);
  slice.scales.offset += index * tensor.scaleBlocks * rows * sizeof(uint16_t);
  slice.shape.erase(slice.shape.begin());
  if (!slice.strides.empty())
    slice.strides.erase(slice.strides.begin());
  return slice;
}

std::string codingName(const StoredTensor &tensor) {
  switch (tensor.coding) {
  case StoredTensor::Coding::kPlain:
    return std::string(elementName(tensor.type));
  case StoredTensor::Coding::kBlocks:
    return "Q8_0";
  case StoredTensor::Coding::kScaled:
    return absl::StrCat("I8 with ", tensor.scaleBlocks,
                        tensor.scaleBlocks == 1 ? " scale" : " scales",
                        " a row");
  }
  return "";
}

} // namespace grok
