// The tokenizer plugin, a shared object that is opened only when text is asked
// for.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/tokenizer/Plugin.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::grokrun {
namespace {

constexpr const char *kPluginName = "libgroktok_sentencepiece.so";
constexpr const char *kPluginVariable = "GROK_TOKENIZER_PLUGIN";

/// Directory of the running program, with a slash.
std::string programDirectory() {
  std::string path(4096, '\0');
  ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? size_t(length) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

std::vector<std::string> pluginCandidates() {
  if (const char *named = std::getenv(kPluginVariable))
    return {named};
  std::string directory = programDirectory();
  return {directory + kPluginName, directory + "../lib/" + kPluginName,
          directory + "../" GROK_LIBDIR "/" + kPluginName};
}

absl::StatusOr<void *> openPlugin() {
  std::vector<std::string> candidates = pluginCandidates(), reasons;
  for (const std::string &path : candidates) {
    if (access(path.c_str(), F_OK) != 0)
      continue;
    if (void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))
      return library;
    reasons.emplace_back(dlerror());
  }
  if (reasons.empty())
    reasons.push_back(
        absl::StrCat("found none at ", absl::StrJoin(candidates, ", ")));
  return absl::UnavailableError(
      absl::StrCat("tokenizer plugin: ", reasons.front(), "; name one in ",
                   kPluginVariable, " or give token ids with --ids"));
}

absl::Status failure(const grok_tokenizer_plugin &plugin,
                     grok_tokenizer_result &result) {
  absl::Status status =
      absl::InvalidArgumentError(absl::StrCat("tokenizer: ", result.error));
  plugin.release(&result);
  return status;
}

class SentencePieceTokenizer : public Tokenizer {
public:
  explicit SentencePieceTokenizer(void *library) : library_(library) {}
  SentencePieceTokenizer(const SentencePieceTokenizer &) = delete;
  ~SentencePieceTokenizer() override {
    if (tokenizer_)
      plugin_->close(tokenizer_);
    dlclose(library_);
  }

  absl::Status load(const std::string &path) {
    auto entry = reinterpret_cast<const grok_tokenizer_plugin *(*)()>(
        dlsym(library_, GROK_TOKENIZER_SYMBOL));
    plugin_ = entry ? entry() : nullptr;
    if (!plugin_ || plugin_->version != GROK_TOKENIZER_VERSION)
      return absl::UnavailableError(absl::StrCat(
          "tokenizer plugin: found none of version ", GROK_TOKENIZER_VERSION,
          " in the shared object; name another in ", kPluginVariable));
    grok_tokenizer_result error{};
    tokenizer_ = plugin_->open(path.c_str(), &error);
    return tokenizer_ ? absl::OkStatus() : failure(*plugin_, error);
  }

  absl::StatusOr<std::vector<int32_t>>
  encode(const std::string &text) const override {
    return idsOf(plugin_->encode(tokenizer_, text.data(), text.size()));
  }
  absl::StatusOr<std::vector<int32_t>> encodeChat(const Chat &) const override {
    return absl::InvalidArgumentError(absl::StrCat(
        "--chat: found the tokenizer ", kSentencePieceFile, ", expected ",
        kBytePairFile,
        ": only Grok-2 has a form of conversations; use --prompt"));
  }
  absl::StatusOr<std::string>
  decode(const std::vector<int32_t> &ids) const override {
    grok_tokenizer_result result =
        plugin_->decode(tokenizer_, ids.data(), ids.size());
    if (result.error)
      return failure(*plugin_, result);
    std::string text(result.text, result.length);
    plugin_->release(&result);
    return text;
  }
  absl::StatusOr<std::vector<int32_t>> stopIds() const override {
    return idsOf(plugin_->stop_ids(tokenizer_));
  }

private:
  absl::StatusOr<std::vector<int32_t>>
  idsOf(grok_tokenizer_result result) const {
    if (result.error)
      return failure(*plugin_, result);
    std::vector<int32_t> ids(result.ids, result.ids + result.length);
    plugin_->release(&result);
    return ids;
  }

  void *library_;
  const grok_tokenizer_plugin *plugin_ = nullptr;
  void *tokenizer_ = nullptr;
};

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>>
openSentencePiece(const Bundle &bundle) {
  absl::StatusOr<void *> library = openPlugin();
  if (!library.ok())
    return library.status();
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(*library);
  if (absl::Status status =
          tokenizer->load(absl::StrCat(bundle.path(), "/", kSentencePieceFile));
      !status.ok())
    return status;
  return tokenizer;
}

} // namespace grok::grokrun
