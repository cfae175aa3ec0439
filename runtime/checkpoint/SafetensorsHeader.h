// The safetensors container: a length, a JSON header, the tensors' bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace grok {

/// Every element type that the format knows. The loader converts F32, F16 and
/// BF16; the others may occur in a file, in tensors that no model uses.
enum class ElementType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
  kF4,
  kF6E2M3,
  kF6E3M2,
};
std::string_view elementName(ElementType type);
unsigned elementBits(ElementType type);

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::kU8;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0; // bytes from the start of the file
};

/// Limits beyond the format's own, so that a hostile header cannot take much
/// memory: they are far above what any model of this family needs.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000; // the format's
inline constexpr size_t kMaxTensors = size_t(1) << 18;
inline constexpr size_t kMaxTensorName = 1024;

/// The tensors of a file, in the order of their bytes. InvalidArgument, naming
/// `path`, the tensor and what was found and expected, unless the header is
/// well formed and the tensors cover the rest of the file exactly, without
/// holes and without overlap. Duplicate names and duplicate JSON keys are
/// errors too.
absl::StatusOr<std::vector<TensorEntry>>
parseSafetensors(std::span<const uint8_t> file, const std::string &path);

} // namespace grok
