#include "test/unit/checkpoint/CheckpointFiles.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/Half.h"
#include "runtime/checkpoint/Checkpoint.h"

namespace grok::test {

TempDir::TempDir() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "grok-checkpoint-XXXXXX")
          .string();
  path_ = mkdtemp(pattern.data());
}
TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
void TempDir::write(const std::string &name, std::string_view bytes) const {
  // A file that is mapped keeps its bytes when the name goes.
  std::error_code ignored;
  std::filesystem::remove(*this / name, ignored);
  std::ofstream(*this / name, std::ios::binary)
      .write(bytes.data(), std::streamsize(bytes.size()));
}

std::string withHeader(std::string_view header, std::string_view buffer) {
  uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  out += header;
  out += buffer;
  return out;
}

std::string safetensors(const Tensors &tensors) {
  std::string header = "{", buffer;
  for (const auto &[name, tensor] : tensors) {
    absl::StrAppend(&header, header.size() > 1 ? "," : "", "\"", name,
                    "\":{\"dtype\":\"", tensor.type, "\",\"shape\":[",
                    absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[",
                    buffer.size(), ",", buffer.size() + tensor.data.size(),
                    "]}");
    buffer += tensor.data;
  }
  return withHeader(header + "}", buffer);
}

namespace {

uint16_t bits(uint32_t tag, uint64_t element) {
  return uint16_t(tag * 256 + element + 1);
}
uint64_t count(const std::vector<uint64_t> &shape) {
  uint64_t product = 1;
  for (uint64_t dimension : shape)
    product *= dimension;
  return product;
}

} // namespace

Tensor bf16(std::vector<uint64_t> shape, uint32_t tag) {
  Tensor tensor{"BF16", shape, std::string(count(shape) * 2, '\0')};
  for (uint64_t i = 0; i < count(shape); ++i) {
    uint16_t value = bits(tag, i);
    std::memcpy(tensor.data.data() + 2 * i, &value, 2);
  }
  return tensor;
}
float bf16Value(uint32_t tag, uint64_t element) {
  return bf16ToFloat(bits(tag, element));
}

Tensor rowsOf(const Tensor &matrix, uint64_t first, uint64_t count) {
  uint64_t bytes = matrix.data.size() / matrix.shape[0];
  return {matrix.type,
          {count, matrix.shape[1]},
          matrix.data.substr(first * bytes, count * bytes)};
}
Tensor columnsOf(const Tensor &matrix, uint64_t first, uint64_t count) {
  Tensor out{matrix.type, {matrix.shape[0], count}, ""};
  uint64_t row = matrix.data.size() / matrix.shape[0];
  uint64_t element = row / matrix.shape[1];
  for (uint64_t r = 0; r < matrix.shape[0]; ++r)
    out.data += matrix.data.substr(r * row + first * element, count * element);
  return out;
}

ModelConfig smallModel(bool dense) {
  ModelConfig model;
  model.vocabSize = 5;
  model.hiddenSize = 4;
  model.numLayers = 1;
  model.numHeads = 2;
  model.numKvHeads = 1;
  model.headDim = 2;
  model.numExperts = 2;
  model.expertsPerToken = 1;
  model.expertWidth = 6;
  model.denseWidth = dense ? 3 : 0;
  model.tiedHead = !dense;
  model.maxPositions = 16;
  return model;
}

Tensors smallTensors(const ModelConfig &m) {
  std::map<std::string, std::vector<uint64_t>> shapes;
  uint64_t d = m.hiddenSize, f = m.expertWidth;
  shapes["model.embed_tokens.weight"] = {m.vocabSize, d};
  shapes["model.norm.weight"] = {d};
  if (!m.tiedHead)
    shapes["lm_head.weight"] = {m.vocabSize, d};
  for (uint32_t layer = 0; layer < m.numLayers; ++layer) {
    std::string at = absl::StrCat("model.layers.", layer, ".");
    for (const char *norm :
         {"pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"})
      shapes[absl::StrCat(at, norm, ".weight")] = {d};
    shapes[at + "self_attn.q_proj.weight"] = {m.numHeads * m.headDim, d};
    shapes[at + "self_attn.k_proj.weight"] = {m.numKvHeads * m.headDim, d};
    shapes[at + "self_attn.v_proj.weight"] = {m.numKvHeads * m.headDim, d};
    shapes[at + "self_attn.o_proj.weight"] = {d, m.numHeads * m.headDim};
    if (!m.hash)
      shapes[at + "block_sparse_moe.gate.weight"] = {m.numExperts, d};
    for (uint32_t expert = 0; expert < m.numExperts; ++expert) {
      std::string in =
          absl::StrCat(at, "block_sparse_moe.experts.", expert, ".");
      shapes[in + "w1.weight"] = {f, d};
      shapes[in + "w2.weight"] = {d, f};
      shapes[in + "w3.weight"] = {f, d};
    }
    if (m.denseWidth) {
      shapes[at + "mlp.gate_proj.weight"] = {m.denseWidth, d};
      shapes[at + "mlp.up_proj.weight"] = {m.denseWidth, d};
      shapes[at + "mlp.down_proj.weight"] = {d, m.denseWidth};
    }
  }
  Tensors tensors;
  uint32_t tag = 0;
  for (const auto &[name, shape] : shapes)
    tensors[name] = bf16(shape, tag++);
  return tensors;
}
uint32_t tagOf(const Tensors &tensors, const std::string &name) {
  return uint32_t(std::distance(tensors.begin(), tensors.find(name)));
}

::testing::AssertionResult fails(const absl::Status &status,
                                 const std::vector<std::string> &parts) {
  if (status.ok())
    return ::testing::AssertionFailure() << "no error";
  if (status.code() == absl::StatusCode::kInternal)
    return ::testing::AssertionFailure() << "internal: " << status;
  std::string message(status.message());
  for (const std::string &part : parts)
    if (message.find(part) == message.npos)
      return ::testing::AssertionFailure()
             << "'" << part << "' is not in: " << message;
  return ::testing::AssertionSuccess();
}
absl::Status openStatus(const std::string &directory,
                        const ModelConfig &model) {
  return openCheckpoint(directory, model).status();
}

} // namespace grok::test
