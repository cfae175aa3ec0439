#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/BlobWriter.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/BundleCheck.h"
#include "runtime/bundle/BundlePlace.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/OutputFile.h"
#include "runtime/bundle/PlanCheck.h"
#include "runtime/bundle/Sha256.h"
#include "runtime/bundle/StagedBundle.h"

namespace grok {
namespace {

std::span<const uint8_t> asBytes(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// Of everything that the blob follows from; empty: the weights are not known
/// well enough.
absl::StatusOr<std::string> blobKey(const std::string &version,
                                    const std::string &modelJson,
                                    const std::string &plan,
                                    const TensorSource *weights) {
  const std::string identity = weights ? weights->identity() : "";
  if (identity.empty())
    return std::string();
  Sha256 hash;
  for (const std::string *text : {&version, &modelJson, &plan, &identity}) {
    hash.update(asBytes(absl::StrCat(text->size(), " ")));
    hash.update(asBytes(*text));
  }
  return hash.finish();
}

bool isReserved(const std::string &name) {
  return name == kManifestFile || name == kModelFile || name == kPlanFile ||
         name == kBlobFile;
}

absl::Status checkContents(const BundleContents &contents, bool hasWeights) {
  if (absl::Status s = contents.model.validate(); !s.ok())
    return s;
  if (absl::Status s = checkPlan(contents.plan, contents.model, kPlanFile);
      !s.ok())
    return s;
  if (absl::Status s = checkOptions(contents.options, contents.plan, kPlanFile);
      !s.ok())
    return s;
  for (const auto &[name, text] : contents.files)
    if (!isFileName(name) || isReserved(name))
      return absl::InvalidArgumentError(absl::StrCat(
          "file '", name, "': found a name that a bundle's file cannot have"));
  bool needsBlob = contents.manifest.weights.kind == WeightsRecipe::Kind::kBlob;
  bool needsNone = contents.manifest.weights.kind == WeightsRecipe::Kind::kNone;
  if ((needsBlob && !hasWeights) || (needsNone && hasWeights))
    return absl::InternalError(
        "the weights recipe and the given weights don't agree");
  return absl::OkStatus();
}

/// Where the disk has no room, what others left on it is part of the reason.
absl::Status withLeftovers(const absl::Status &status,
                           const std::string &path) {
  if (!absl::IsResourceExhausted(status))
    return status;
  std::string message(status.message());
  for (const std::string &left : findLeftovers(path))
    absl::StrAppend(&message, "; ", leftoverMessage(left));
  return absl::ResourceExhaustedError(message);
}

/// Every file of the bundle, the manifest last. `key`: as StagedBundle has it.
absl::Status fill(StagedBundle &staged, const BundleContents &contents,
                  const std::string &modelJson, const std::string &plan,
                  const std::string &key, TensorSource *weights,
                  const WriteHooks &hooks) {
  for (const auto &[name, text] : contents.files)
    if (absl::Status s = staged.addFile(name, text); !s.ok())
      return s;
  if (absl::Status s = staged.addFile(kModelFile, modelJson); !s.ok())
    return s;
  if (absl::Status s = staged.addFile(kPlanFile, plan); !s.ok())
    return s;
  if (weights) {
    BlobWriter blob(contents.model, contents.plan, *weights, staged.path());
    absl::StatusOr<FileRecord> record = blob.write(
        key.empty() ? nullptr : &staged.journal(), staged.packed(), hooks);
    if (!record.ok())
      return record.status();
    if (absl::Status s = weights->checkUnchanged(); !s.ok())
      return s;
    staged.addBlob(*std::move(record));
  }
  Manifest manifest = contents.manifest;
  // What was packed later keeps its kernels and its prediction, and so its
  // version, from the first one on that is written as this one is.
  manifest.formatVersion =
      std::max(manifest.formatVersion, kSealedFormatVersion);
  manifest.smPolicy = contents.plan.smPolicy;
  manifest.bankPolicy = contents.plan.bankPolicy;
  manifest.files = staged.files();
  if (absl::Status s = checkManifest(manifest, contents.options, contents.plan,
                                     kManifestFile);
      !s.ok())
    return s;
  absl::StatusOr<std::string> text = writeManifest(manifest);
  if (!text.ok())
    return text.status();
  return staged.addFile(kManifestFile, *text);
}

} // namespace

absl::Status writeBundle(const std::string &givenPath,
                         const BundleContents &contents, TensorSource *weights,
                         const WriteHooks &hooks) {
  std::string path = trimSlashes(givenPath);
  if (path.empty())
    return absl::InvalidArgumentError("found an empty bundle path");
  for (auto check : {checkReplaceable, checkOutsideOfBundles})
    if (absl::Status s = check(path); !s.ok())
      return s;
  if (absl::Status s = checkContents(contents, weights); !s.ok())
    return s;
  absl::StatusOr<bool> exists = findBundle(path);
  if (!exists.ok())
    return exists.status();
  std::string modelJson = writeModelJson(contents.model, contents.options);
  std::string plan = contents.plan.serialize();
  absl::StatusOr<std::string> key =
      blobKey(contents.manifest.compilerVersion, modelJson, plan, weights);
  if (!key.ok())
    return key.status();
  StagedBundle staged(path);
  if (absl::Status s = staged.create(*key, contents.plan.blobBytes); !s.ok())
    return withLeftovers(s, path);
  if (hooks.report)
    for (const std::string &left : findLeftovers(path))
      hooks.report(true, leftoverMessage(left));
  if (absl::Status s =
          fill(staged, contents, modelJson, plan, *key, weights, hooks);
      !s.ok())
    return withLeftovers(s, path);
  return staged.commit(*exists);
}

absl::Status packBundle(const std::string &path, TensorSource &weights,
                        WeightsRecipe recipe, const WriteHooks &hooks) {
  if (recipe.kind == WeightsRecipe::Kind::kNone)
    return absl::InternalError("packing needs weights");
  absl::StatusOr<std::shared_ptr<Bundle>> bundle = Bundle::open(path);
  if (!bundle.ok())
    return bundle.status();
  if ((*bundle)->hasFile(kBlobFile))
    return absl::FailedPreconditionError(absl::StrCat(
        (*bundle)->path(), ": found a bundle that has its weights, expected "
                           "one without weights.blob"));
  BundleContents contents{(*bundle)->model(),
                          (*bundle)->options(),
                          (*bundle)->plan(),
                          (*bundle)->manifest(),
                          {}};
  contents.manifest.weights = recipe;
  for (const auto &[name, record] : (*bundle)->manifest().files) {
    if (isReserved(name))
      continue;
    absl::StatusOr<std::string> text = (*bundle)->readFile(name);
    if (!text.ok())
      return text.status();
    contents.files[name] = *std::move(text);
  }
  return writeBundle(path, contents, &weights, hooks);
}

} // namespace grok
