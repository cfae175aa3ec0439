#include "runtime/tokenizer/PluginTokenizer.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/SharedLibrary.h"

namespace grok {
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
    absl::StatusOr<void *> library = openLibrary(path);
    if (library.ok())
      return library;
    reasons.emplace_back(library.status().message());
  }
  if (reasons.empty())
    reasons.push_back(
        absl::StrCat("found none at ", absl::StrJoin(candidates, ", ")));
  return absl::UnavailableError(
      absl::StrCat("tokenizer plugin: ", reasons.front(), "; name one in ",
                   kPluginVariable, " or give token ids with --ids"));
}

/// The error of a result, which it frees.
std::string takeError(const grok_tokenizer_plugin &plugin,
                      grok_tokenizer_result &result) {
  std::string error = result.error;
  plugin.release(&result);
  return error;
}

} // namespace

absl::StatusOr<std::unique_ptr<PluginTokenizer>>
PluginTokenizer::open(const std::string &path, uint32_t vocabulary) {
  absl::StatusOr<void *> library = openPlugin();
  if (!library.ok())
    return library.status();
  std::unique_ptr<PluginTokenizer> tokenizer(new PluginTokenizer(*library));
  if (absl::Status status = tokenizer->load(path, vocabulary); !status.ok())
    return status;
  return tokenizer;
}

PluginTokenizer::~PluginTokenizer() {
  if (tokenizer_)
    plugin_->close(tokenizer_);
  dlclose(library_);
}

absl::Status PluginTokenizer::load(const std::string &path,
                                   uint32_t vocabulary) {
  auto entry = reinterpret_cast<const grok_tokenizer_plugin *(*)()>(
      dlsym(library_, GROK_TOKENIZER_SYMBOL));
  plugin_ = entry ? entry() : nullptr;
  if (!plugin_ || plugin_->version != GROK_TOKENIZER_VERSION)
    return absl::UnavailableError(absl::StrCat(
        "tokenizer plugin: found none of version ", GROK_TOKENIZER_VERSION,
        " in the shared object; name another in ", kPluginVariable));
  path_ = path;
  vocabulary_ = vocabulary;
  absl::StatusOr<std::string> model = readInputFile(path, kMaxTokenizerBytes);
  if (!model.ok())
    return model.status();
  grok_tokenizer_result error{};
  tokenizer_ = plugin_->open(model->data(), model->size(), &error);
  if (!tokenizer_)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found what is not taken from a SentencePiece model (",
        takeError(*plugin_, error),
        "), expected the release's; if the file is damaged, download it "
        "again"));
  uint32_t pieces = plugin_->piece_count(tokenizer_);
  if (pieces > vocabulary)
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": found ", pieces, " pieces, expected at most the model's ",
        vocabulary, "; tokenizer and model are not of one release"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>>
PluginTokenizer::encode(std::string_view text) const {
  return idsOf(plugin_->encode(tokenizer_, text.data(), text.size()));
}

absl::StatusOr<std::string>
PluginTokenizer::decode(const std::vector<int32_t> &ids) const {
  for (int32_t id : ids)
    if (id < 0 || uint32_t(id) >= vocabulary_)
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": found id ", id, ", expected less than ", vocabulary_));
  grok_tokenizer_result result =
      plugin_->decode(tokenizer_, ids.data(), ids.size());
  if (result.error)
    return failure(result);
  std::string text(result.text, result.length);
  plugin_->release(&result);
  return text;
}

absl::StatusOr<std::vector<int32_t>> PluginTokenizer::stopIds() const {
  return idsOf(plugin_->stop_ids(tokenizer_));
}

absl::StatusOr<std::vector<int32_t>>
PluginTokenizer::idsOf(grok_tokenizer_result result) const {
  if (result.error)
    return failure(result);
  std::vector<int32_t> ids(result.ids, result.ids + result.length);
  plugin_->release(&result);
  return ids;
}

absl::Status PluginTokenizer::failure(grok_tokenizer_result &result) const {
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": ", takeError(*plugin_, result)));
}

} // namespace grok
