// Reading must not need memory in proportion to the model.
#include <cstring>
#include <filesystem>
#include <string>

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/checkpoint/CheckpointFiles.h"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

uint64_t peakBytes() {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_maxrss) * 1024;
}

/// A file with holes: 512 MiB of zeros that takes no disk.
TEST(Memory, PeakIsBounded) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the address sanitizer's own memory counts too";
#endif
  ModelConfig model = smallModel(false);
  model.hiddenSize = 8192;
  model.vocabSize = 32768;
  Tensors small;
  uint64_t embedding = uint64_t(model.hiddenSize) * model.vocabSize * 2;
  // Only the header of this one, laid out before the big tensor.
  for (auto &[name, tensor] : smallTensors(smallModel(false))) {
    std::vector<uint64_t> shape = tensor.shape;
    for (uint64_t &dimension : shape)
      dimension = dimension == 4 ? 8192 : dimension;
    if (name.find("self_attn.q_proj") != name.npos)
      shape = {4, 8192};
    if (name.find("self_attn.o_proj") != name.npos)
      shape = {8192, 4};
    if (name != "model.embed_tokens.weight")
      small[name] = bf16(shape, 1);
  }
  std::string file = safetensors(small);
  uint64_t header;
  std::memcpy(&header, file.data(), 8);
  uint64_t buffer = file.size() - 8 - header;
  std::string text = file.substr(8, header - 1);
  absl::StrAppend(&text,
                  ",\"model.embed_tokens.weight\":{\"dtype\":\"BF16\","
                  "\"shape\":[32768,8192],\"data_offsets\":[",
                  buffer, ",", buffer + embedding, "]}}");
  file = withHeader(text, std::string_view(file).substr(8 + header));
  TempDir dir;
  dir.write("model.safetensors", file);
  std::filesystem::resize_file(dir / "model.safetensors",
                               file.size() + embedding);

  auto source = openCheckpoint(dir.path(), model);
  ASSERT_TRUE(source.ok()) << source.status();
  uint64_t before = peakBytes();
  std::vector<float> row(model.hiddenSize, 1);
  for (uint32_t r = 0; r < model.vocabSize; ++r)
    ASSERT_TRUE(
        (*source)->readRow({TensorKind::kTokenEmbedding, 0, 0}, r, row).ok());
  EXPECT_EQ(row, std::vector<float>(model.hiddenSize, 0));
  EXPECT_LT(peakBytes() - before, uint64_t(320) << 20);
}

} // namespace
} // namespace grok::test
