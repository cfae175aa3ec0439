#include "tools/grokrun/Tokenizer.h"

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

} // namespace grok::grokrun
