#include "tools/grokrun/Tokenizer.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace grok::grokrun {
namespace {

constexpr const char *kTokenizerFile = "tokenizer.model";
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

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>>
Tokenizer::open(const Bundle &bundle) {
  if (!bundle.hasFile(kTokenizerFile))
    return absl::NotFoundError(absl::StrCat(
        bundle.path(), ": found no tokenizer in the bundle, expected ",
        kTokenizerFile, "; give token ids with --ids"));
  absl::StatusOr<void *> library = openPlugin();
  if (!library.ok())
    return library.status();
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer());
  tokenizer->library_ = *library;
  auto entry = reinterpret_cast<const grok_tokenizer_plugin *(*)()>(
      dlsym(*library, GROK_TOKENIZER_SYMBOL));
  tokenizer->plugin_ = entry ? entry() : nullptr;
  if (!tokenizer->plugin_ ||
      tokenizer->plugin_->version != GROK_TOKENIZER_VERSION)
    return absl::UnavailableError(absl::StrCat(
        "tokenizer plugin: found none of version ", GROK_TOKENIZER_VERSION,
        " in the shared object; name "
        "another in ",
        kPluginVariable));
  grok_tokenizer_result error{};
  std::string path = absl::StrCat(bundle.path(), "/", kTokenizerFile);
  tokenizer->tokenizer_ = tokenizer->plugin_->open(path.c_str(), &error);
  if (!tokenizer->tokenizer_)
    return failure(*tokenizer->plugin_, error);
  return tokenizer;
}

Tokenizer::~Tokenizer() {
  if (tokenizer_)
    plugin_->close(tokenizer_);
  if (library_)
    dlclose(library_);
}

absl::StatusOr<std::vector<int32_t>>
Tokenizer::encode(const std::string &text) const {
  grok_tokenizer_result result =
      plugin_->encode(tokenizer_, text.data(), text.size());
  if (result.error)
    return failure(*plugin_, result);
  std::vector<int32_t> ids(result.ids, result.ids + result.length);
  plugin_->release(&result);
  return ids;
}

absl::StatusOr<std::string>
Tokenizer::decode(const std::vector<int32_t> &ids) const {
  grok_tokenizer_result result =
      plugin_->decode(tokenizer_, ids.data(), ids.size());
  if (result.error)
    return failure(*plugin_, result);
  std::string text(result.text, result.length);
  plugin_->release(&result);
  return text;
}

} // namespace grok::grokrun
