#include "runtime/bundle/BundleCheck.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/Names.h"

namespace grok {
namespace {

absl::Status mismatch(std::string_view file, const char *what,
                      const std::string &found, const std::string &expected) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(file), ": ", what,
                                                 ": found ", found,
                                                 ", expected ", expected));
}

} // namespace

absl::Status checkOptions(const CompileOptions &o, const PlanTables &plan,
                          std::string_view file) {
  struct Field {
    const char *name;
    std::string inPlan, asked;
  };
  auto word = [](auto v) { return std::string(wordFor(v)); };
  const Field fields[] = {
      {"dtype", word(plan.dtype), word(o.dtype)},
      {"quantization", word(plan.quantization), word(o.quantization)},
      {"activations", word(plan.activations), word(o.activations)},
      {"SM policy", word(plan.smPolicy), word(o.smPolicy)},
      {"bank policy", word(plan.bankPolicy), word(o.bankPolicy)},
      {"max batch", absl::StrCat(plan.maxBatch), absl::StrCat(o.maxBatch)},
      {"max sequence", absl::StrCat(plan.maxSeq), absl::StrCat(o.maxSeq)},
  };
  for (const Field &f : fields)
    if (f.inPlan != f.asked)
      return mismatch(file, f.name, f.inPlan, f.asked + " as in the options");
  if (plan.prefill.tokens > o.maxPrefill)
    return mismatch(
        file, "prefill tokens", absl::StrCat(plan.prefill.tokens),
        absl::StrCat("at most the ", o.maxPrefill, " of the options"));
  return absl::OkStatus();
}

absl::Status checkManifest(const Manifest &manifest,
                           const CompileOptions &options,
                           const PlanTables &plan, std::string_view file) {
  if (manifest.smPolicy != plan.smPolicy ||
      manifest.bankPolicy != plan.bankPolicy)
    return mismatch(file, "policies", "others", "those of the plan");
  std::vector<const char *> needed = {kModelFile, kPlanFile};
  if (manifest.sm)
    needed.push_back(kDecodeFile);
  bool prefills = manifest.sm && plan.prefill.tokens;
  if (prefills)
    needed.push_back(kPrefillFile);
  bool traced = manifest.sm && options.trace;
  if (traced)
    needed.push_back(kTraceFile);
  for (const char *name : needed)
    if (!manifest.files.count(name))
      return mismatch(file, "files", absl::StrCat("no ", name), "it");
  if (!prefills && manifest.files.count(kPrefillFile))
    return mismatch(file, "files", kPrefillFile,
                    "none: the plan has no prefill");
  if (!traced && manifest.files.count(kTraceFile))
    return mismatch(file, "files", kTraceFile,
                    "none: the options don't ask for it");
  auto blob = manifest.files.find(kBlobFile);
  bool hasBlob = blob != manifest.files.end();
  if (manifest.weights.kind == WeightsRecipe::Kind::kBlob && !hasBlob)
    return mismatch(file, "weights", "kind 'blob' without weights.blob", "it");
  if (manifest.weights.kind == WeightsRecipe::Kind::kNone && hasBlob)
    return mismatch(file, "weights", "kind 'none' with weights.blob", "none");
  if (hasBlob && blob->second.bytes != plan.blobBytes)
    return mismatch(file, "weights.blob",
                    absl::StrCat(blob->second.bytes, " bytes"),
                    absl::StrCat(plan.blobBytes, " as in the plan"));
  return absl::OkStatus();
}

absl::Status checkDirectory(const std::string &path, const Manifest &manifest) {
  absl::StatusOr<std::vector<std::string>> names = listDirectory(path);
  if (!names.ok())
    return names.status();
  for (const std::string &name : *names)
    if (name != kManifestFile && !manifest.files.count(name))
      return absl::InvalidArgumentError(absl::StrCat(
          path, "/", name,
          ": found a file that the manifest doesn't list, expected none; move "
          "it out of the bundle"));
  for (const auto &[name, record] : manifest.files) {
    std::string file = absl::StrCat(path, "/", name);
    if (!std::binary_search(names->begin(), names->end(), name))
      return absl::NotFoundError(absl::StrCat(
          file, ": found no such file, expected it as the manifest lists it"));
    absl::StatusOr<uint64_t> bytes = regularFileSize(file);
    if (!bytes.ok())
      return bytes.status();
    if (*bytes != record.bytes)
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": found ", *bytes, " bytes, expected ",
                       record.bytes, " as in the manifest"));
  }
  return absl::OkStatus();
}

std::string trimSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

} // namespace grok
