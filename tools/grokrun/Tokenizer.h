// Text through the tokenizer plugin, a shared object that is opened only when
// text is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/tokenizer/Plugin.h"

namespace grok::grokrun {

class Tokenizer {
public:
  /// The bundle's tokenizer, through the plugin that GROK_TOKENIZER_PLUGIN
  /// names, else libgroktok_sentencepiece.so beside the program or in ../lib.
  /// NotFound if the bundle has no tokenizer; Unavailable if there is no
  /// plugin that can be opened.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> open(const Bundle &bundle);
  ~Tokenizer();
  Tokenizer(const Tokenizer &) = delete;

  absl::StatusOr<std::vector<int32_t>> encode(const std::string &text) const;
  absl::StatusOr<std::string> decode(const std::vector<int32_t> &ids) const;

private:
  Tokenizer() = default;
  void *library_ = nullptr;
  const grok_tokenizer_plugin *plugin_ = nullptr;
  void *tokenizer_ = nullptr;
};

} // namespace grok::grokrun
