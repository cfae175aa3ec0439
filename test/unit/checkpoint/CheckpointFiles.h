// Writes small checkpoints, right and wrong ones, for the tests of the readers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "runtime/bundle/TensorSource.h"
#include "gtest/gtest.h"

namespace grok::test {

/// A directory that is removed with the object.
class TempDir {
public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir &) = delete;

  const std::string &path() const { return path_; }
  std::string operator/(const std::string &name) const {
    return path_ + "/" + name;
  }
  void write(const std::string &name, std::string_view bytes) const;

private:
  std::string path_;
};

/// A tensor to be written; its data has the shape's size.
struct Tensor {
  std::string type;
  std::vector<uint64_t> shape;
  std::string data;
};
using Tensors = std::map<std::string, Tensor>;

/// The bytes of a safetensors file.
std::string safetensors(const Tensors &tensors);
/// A header with its length in front, then the buffer.
std::string withHeader(std::string_view header, std::string_view buffer = {});

/// bf16, all elements of all tensors differ: element i of tensor `tag`
/// has the bits tag * 256 + i + 1.
Tensor bf16(std::vector<uint64_t> shape, uint32_t tag);
/// What bf16() put at an element.
float bf16Value(uint32_t tag, uint64_t element);
/// Rows [first, first + count) or columns of a matrix.
Tensor rowsOf(const Tensor &matrix, uint64_t first, uint64_t count);
Tensor columnsOf(const Tensor &matrix, uint64_t first, uint64_t count);

/// One layer, two experts, D = 4, F = 6, H = 2, K = 1, dh = 2, V = 5; with a
/// residual MLP of width 3 and an untied head if `dense`.
ModelConfig smallModel(bool dense);
/// Its tensors in the spelling self_attn / block_sparse_moe, tagged in the
/// order of the names.
Tensors smallTensors(const ModelConfig &model);
/// The tag that smallTensors gave a tensor.
uint32_t tagOf(const Tensors &tensors, const std::string &name);

/// Whether a status is an error with all the parts in its message.
::testing::AssertionResult fails(const absl::Status &status,
                                 const std::vector<std::string> &parts);
/// openCheckpoint's status.
absl::Status openStatus(const std::string &directory, const ModelConfig &model);

} // namespace grok::test
