#include "tools/grokrun/Tokenizer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/Manifest.h"

namespace grok::grokrun {

absl::StatusOr<std::unique_ptr<Tokenizer>>
Tokenizer::open(const Bundle &bundle) {
  if (bundle.hasFile(kSentencePieceFile))
    return openSentencePiece(bundle);
  if (bundle.hasFile(kBytePairFile))
    return openBytePairs(bundle);
  return absl::NotFoundError(absl::StrCat(
      bundle.path(), ": found no tokenizer in the bundle, expected ",
      kSentencePieceFile, " or ", kBytePairFile,
      "; give token ids with --ids"));
}

absl::StatusOr<std::vector<int32_t>> textStopIds(const ModelConfig &model,
                                                 const Tokenizer &tokenizer) {
  absl::StatusOr<std::vector<int32_t>> named = tokenizer.stopIds();
  if (!named.ok())
    return named;
  std::vector<int32_t> ids;
  if (model.eosId >= 0)
    ids.push_back(int32_t(model.eosId));
  for (int32_t id : *named)
    if (std::ranges::find(ids, id) == ids.end())
      ids.push_back(id);
  return ids;
}

} // namespace grok::grokrun
