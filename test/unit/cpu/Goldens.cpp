#include "test/unit/cpu/Goldens.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "nlohmann/json.hpp"
#include "gtest/gtest.h"

namespace grok::test {
namespace {

template <typename T>
std::vector<T> values(const std::string &data, const nlohmann::json &tensor) {
  uint64_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
  std::vector<T> out((end - begin) / sizeof(T));
  std::memcpy(out.data(), data.data() + begin, end - begin);
  return out;
}

} // namespace

std::vector<Golden> readGoldens(const std::string &directory) {
  std::ifstream file(directory + "/golden.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)),
                    std::istreambuf_iterator<char>());
  uint64_t header = 0;
  if (bytes.size() < 8) {
    ADD_FAILURE() << "cannot read " << directory << "/golden.safetensors";
    return {};
  }
  std::memcpy(&header, bytes.data(), 8);
  nlohmann::json tensors = nlohmann::json::parse(bytes.substr(8, header));
  std::string data = bytes.substr(8 + header);
  std::vector<Golden> goldens;
  if (tensors.contains("ids"))
    goldens.push_back({values<int32_t>(data, tensors["ids"]), 1,
                       values<float>(data, tensors["logits"])});
  for (int i = 0; tensors.contains("ids." + std::to_string(i)); ++i) {
    std::string n = std::to_string(i);
    goldens.push_back({values<int32_t>(data, tensors["ids." + n]), 16,
                       values<float>(data, tensors["logits." + n])});
  }
  return goldens;
}

std::string modelsDirectory() {
  const char *directory = std::getenv("GROK_TEST_MODELS");
  return directory ? directory : "test/models";
}

} // namespace grok::test
