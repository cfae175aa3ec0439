// A tokenizer.model, read by the plugin: a shared object that is opened only
// when it is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tokenizer/Plugin.h"

namespace grok {

class PluginTokenizer {
public:
  /// Through the plugin that GROK_TOKENIZER_PLUGIN names, else
  /// libgroktok_sentencepiece.so beside the program or in ../lib. Unavailable
  /// if there is no plugin that can be opened; InvalidArgument if the file is
  /// no such model, or has more pieces than the model's `vocabulary`.
  static absl::StatusOr<std::unique_ptr<PluginTokenizer>>
  open(const std::string &path, uint32_t vocabulary);
  PluginTokenizer(const PluginTokenizer &) = delete;
  ~PluginTokenizer();

  absl::StatusOr<std::vector<int32_t>> encode(std::string_view text) const;
  /// Ids of the vocabulary that have no piece have no text.
  absl::StatusOr<std::string> decode(const std::vector<int32_t> &ids) const;
  absl::StatusOr<std::vector<int32_t>> stopIds() const;

private:
  explicit PluginTokenizer(void *library) : library_(library) {}
  absl::Status load(const std::string &path, uint32_t vocabulary);
  absl::StatusOr<std::vector<int32_t>>
  idsOf(grok_tokenizer_result result) const;
  /// Of a result, which it frees.
  absl::Status failure(grok_tokenizer_result &result) const;

  std::string path_;
  uint32_t vocabulary_ = 0;
  void *library_;
  const grok_tokenizer_plugin *plugin_ = nullptr;
  void *tokenizer_ = nullptr;
};

} // namespace grok
