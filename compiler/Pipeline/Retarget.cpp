#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "compiler/Pipeline/Build.h"
#include "compiler/Pipeline/Pipeline.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/Prediction.h"

namespace grok {
namespace {

absl::Status checkRequest(const RetargetRequest &request) {
  if (!request.target && !request.bankCount)
    return absl::InvalidArgumentError("found neither a target nor a bank "
                                      "count, expected at least one of them");
  std::error_code error;
  if (std::filesystem::equivalent(request.input, request.output, error))
    return absl::InvalidArgumentError(absl::StrCat(
        request.output,
        ": found the input bundle, expected another place; it stays as it is"));
  return absl::OkStatus();
}

absl::StatusOr<Target> chooseTarget(const RetargetRequest &request,
                                    const Bundle &bundle) {
  absl::StatusOr<Target> target =
      request.target ? absl::StatusOr<Target>(*request.target)
                     : parseTarget(bundle.manifest().target.json,
                                   bundle.path() + "/manifest.json");
  if (target.ok() && request.bankCount)
    target->bankCount = *request.bankCount;
  return target;
}

/// Of the requests that were predicted.
RequestShape shapeOf(const Bundle &bundle) {
  for (const Prediction &one : predictionsOf(bundle.manifest().predictionJson))
    if (one.key.request)
      return {one.key.context, one.key.generated};
  return {}; // of a format without
}

/// The request that compiled `bundle`, for another target.
absl::StatusOr<CompileRequest> recompile(const RetargetRequest &request,
                                         const Bundle &bundle) {
  absl::StatusOr<Target> target = chooseTarget(request, bundle);
  if (!target.ok())
    return target.status();
  CompileRequest compile;
  compile.model = bundle.model();
  compile.target = *std::move(target);
  compile.options = bundle.options();
  compile.weights = bundle.manifest().weights;
  compile.shape = shapeOf(bundle);
  compile.allowOversize = request.allowOversize;
  compile.output = request.output;
  return compile;
}

/// The weights in the bundle's blob, whose hash is checked first: opening the
/// bundle checked those of all other files.
absl::StatusOr<std::unique_ptr<TensorSource>>
openBlob(std::shared_ptr<Bundle> bundle, const CompileHooks &hooks) {
  // Before it is verified: whatever is written to it from then on is noticed.
  std::unique_ptr<TensorSource> source = bundleSource(bundle);
  if (absl::Status status = bundle->verify(hooks.checked); !status.ok())
    return status;
  return source;
}

absl::StatusOr<Ingredients> ingredientsOf(std::shared_ptr<Bundle> bundle,
                                          const CompileHooks &hooks) {
  Ingredients ingredients;
  ingredients.openWeights = [bundle, hooks] { return openBlob(bundle, hooks); };
  for (const char *name : {kSentencePieceFile, kBytePairFile}) {
    if (!bundle->hasFile(name))
      continue;
    absl::StatusOr<std::string> tokenizer = bundle->readFile(name);
    if (!tokenizer.ok())
      return tokenizer.status();
    ingredients.tokenizer = *std::move(tokenizer);
    ingredients.tokenizerFile = name;
  }
  return ingredients;
}

} // namespace

absl::Status retarget(const RetargetRequest &request,
                      const CompileHooks &hooks) {
  if (absl::Status status = checkRequest(request); !status.ok())
    return status;
  absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(request.input);
  if (!bundle.ok())
    return bundle.status();
  absl::StatusOr<CompileRequest> again = recompile(request, **bundle);
  if (!again.ok())
    return again.status();
  absl::StatusOr<Ingredients> ingredients = ingredientsOf(*bundle, hooks);
  if (!ingredients.ok())
    return ingredients.status();
  std::ostringstream none; // a bundle prints nothing
  return build(*again, *ingredients, none, hooks);
}

} // namespace grok
