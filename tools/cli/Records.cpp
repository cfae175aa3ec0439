#include "tools/cli/Records.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace grok::cli {

absl::StatusOr<Records> readRecords(const Bundle &bundle) {
  Records records;
  const Manifest &manifest = bundle.manifest();
  std::string where = absl::StrCat(bundle.path(), "/manifest.json");
  absl::StatusOr<Target> target =
      parseTarget(manifest.target.json, absl::StrCat(where, " (target)"));
  if (!target.ok())
    return target.status();
  records.target = *std::move(target);
  absl::StatusOr<json::Document> prediction = json::parse(
      manifest.predictionJson, absl::StrCat(where, " (prediction)"));
  if (!prediction.ok())
    return prediction.status();
  records.prediction = *std::move(prediction);
  auto ofModel = [&](const absl::Status &status) {
    return absl::Status(status.code(),
                        absl::StrCat(bundle.path(), "/model.json: ",
                                     std::string(status.message())));
  };
  const ModelConfig &model = bundle.model();
  if (model.hash) {
    absl::StatusOr<HashAnalysis> hash = analyzeHash(model);
    if (!hash.ok())
      return ofModel(hash.status());
    records.hash = *std::move(hash);
  }
  const CompileOptions &options = bundle.options();
  if (options.pruningRatio > 0) {
    absl::StatusOr<PruningChoice> pruning =
        choosePruned(model, options.pruningRatio, options.histogram);
    if (!pruning.ok())
      return ofModel(pruning.status());
    records.pruning = *std::move(pruning);
  }
  return records;
}

} // namespace grok::cli
