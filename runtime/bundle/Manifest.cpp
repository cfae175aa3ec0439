#include "runtime/bundle/Manifest.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/JsonReader.h"
#include "runtime/bundle/ModelJson.h"
#include "runtime/bundle/Names.h"
#include "runtime/bundle/PredictionCheck.h"
#include "runtime/bundle/Sha256.h"

namespace grok {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "grok-bundle";
constexpr std::string_view kSealKey = "\"seal\": \"";

Words<WeightsRecipe::Kind> weightsWords() {
  return {{"blob", WeightsRecipe::Kind::kBlob},
          {"none", WeightsRecipe::Kind::kNone},
          {"synthetic", WeightsRecipe::Kind::kSynthetic}};
}

absl::StatusOr<CompileOptions> optionsFromJson(const json::Document &document,
                                               const std::string &pointer,
                                               const ModelConfig &model,
                                               uint32_t formatVersion) {
  CompileOptions o;
  json::ObjectReader in(document, pointer);
  in.choice("dtype", o.dtype, dtypeWords());
  in.choice("activations", o.activations, activationsWords());
  in.choice("sm_policy", o.smPolicy, smPolicyWords());
  in.choice("bank_policy", o.bankPolicy, bankPolicyWords());
  in.u32("max_batch", o.maxBatch);
  in.u32("max_seq", o.maxSeq);
  o.maxPrefill = 0;
  if (formatVersion > 2)
    in.u32("max_prefill", o.maxPrefill);
  if (formatVersion > 3)
    in.choice("quantization", o.quantization, quantizationWords());
  in.boolean("keep_unreachable", o.keepUnreachable);
  in.number("pruning_ratio", o.pruningRatio);
  if (in.ok() && !(o.pruningRatio >= 0 && o.pruningRatio <= 1))
    in.fail("pruning_ratio", absl::StrCat(o.pruningRatio), "0 .. 1");
  in.boolean("trace", o.trace);
  if (const Json *histogram = in.member("histogram")) {
    bool counts = histogram->is_array() &&
                  (histogram->empty() || histogram->size() == model.numExperts);
    for (const Json &count : *histogram)
      if ((counts = counts && count.is_number_unsigned()))
        o.histogram.push_back(count.get<uint64_t>());
    if (!counts)
      in.fail("histogram", json::describe(*histogram),
              absl::StrCat("no count or one for each of the ", model.numExperts,
                           " experts"));
  }
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  return o;
}

/// Puts the object that a canonical text holds; an empty text is an empty
/// object.
absl::Status embed(const std::string &text, const char *what, Json &out) {
  json::startObject(out);
  if (text.empty())
    return absl::OkStatus();
  absl::StatusOr<json::Document> document = json::parse(text, what);
  if (!document.ok())
    return document.status();
  if (!document->root.is_object())
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": found ", json::describe(document->root),
                     ", expected a JSON object"));
  out = std::move(document->root);
  return absl::OkStatus();
}

std::string canonical(const Json &value) { return value.dump(2) + "\n"; }

bool isHash(const std::string &text) {
  return text.size() == kHashDigits &&
         text.find_first_not_of("0123456789abcdef") == text.npos;
}

absl::Status readFiles(const json::Document &document, Manifest &manifest) {
  const Json &files = document.root["files"];
  if (!files.is_object())
    return absl::InvalidArgumentError(
        absl::StrCat(document.place("/files"), ": key 'files': found ",
                     json::describe(files), ", expected an object"));
  for (const auto &[name, value] : files.items()) {
    // A name with a '/' would need escaping in the pointer below.
    if (!isFileName(name) || name == kManifestFile)
      return absl::InvalidArgumentError(
          absl::StrCat(document.place("/files"), ": found a file name ",
                       json::describe(Json(name)),
                       ", expected letters, digits, '.', '_' and '-', and not "
                       "the manifest"));
    FileRecord record;
    json::ObjectReader in(document, absl::StrCat("/files/", name));
    in.u64("bytes", record.bytes);
    in.string("sha256", record.sha256);
    if (in.ok() && !isHash(record.sha256))
      in.fail("sha256", "something else", "64 lower-case hex digits");
    if (absl::Status status = in.finish(); !status.ok())
      return status;
    manifest.files[name] = record;
  }
  return absl::OkStatus();
}

absl::Status readWeights(const json::Document &document,
                         WeightsRecipe &weights) {
  json::ObjectReader in(document, "/weights");
  in.choice("kind", weights.kind, weightsWords());
  if (weights.kind == WeightsRecipe::Kind::kSynthetic)
    in.u64("seed", weights.seed);
  return in.finish();
}

absl::Status readTarget(const json::Document &document, TargetRecord &target) {
  json::ObjectReader in(document, "/target");
  in.string("name", target.name);
  const Json *description = in.member("description");
  if (description && !description->is_object())
    in.fail("description", json::describe(*description), "an object");
  else if (description)
    target.json = canonical(*description);
  return in.finish();
}

absl::Status readPolicies(const json::Document &document, Manifest &manifest) {
  json::ObjectReader in(document, "/policies");
  in.choice("sm", manifest.smPolicy, smPolicyWords());
  in.choice("bank", manifest.bankPolicy, bankPolicyWords());
  return in.finish();
}

/// The format's name and version, before anything that a newer format may have
/// changed.
absl::Status checkFormat(const json::Document &document) {
  const Json &root = document.root;
  auto format = root.is_object() ? root.find("format") : root.end();
  if (!root.is_object() || format == root.end() || *format != kFormat)
    return absl::InvalidArgumentError(
        absl::StrCat(document.file, ": found no \"format\": \"",
                     std::string(kFormat), "\", expected a bundle's manifest"));
  auto version = root.find("format_version");
  if (version == root.end() || !version->is_number_unsigned())
    return absl::InvalidArgumentError(absl::StrCat(
        document.place("/format_version"),
        ": key 'format_version': found no number, expected an integer"));
  uint64_t number = version->get<uint64_t>();
  if (number > kBundleFormatVersion)
    return absl::FailedPreconditionError(absl::StrCat(
        document.place("/format_version"), ": found bundle format ", number,
        ", expected at most ", kBundleFormatVersion,
        "; a newer release wrote this bundle, read it with that one"));
  if (number < kOldestFormatVersion)
    return absl::FailedPreconditionError(absl::StrCat(
        document.place("/format_version"), ": found bundle format ", number,
        ", expected at least ", kOldestFormatVersion,
        "; this release's kernels and plans are others, compile the model "
        "again"));
  return absl::OkStatus();
}

absl::Status checkSeal(std::string_view text, const json::Document &document,
                       const std::string &seal) {
  absl::StatusOr<std::string> sealed = sealManifest(std::string(text));
  if (!sealed.ok())
    return sealed.status();
  if (isHash(seal) && *sealed == text)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      document.place("/seal"), ": key 'seal': found ", json::shown(seal),
      ", expected the text's own seal; the manifest was changed or damaged: "
      "compile the bundle again, or restore it from a copy"));
}

} // namespace

absl::StatusOr<std::string> sealManifest(std::string text) {
  size_t at = text.find(kSealKey);
  if (at == text.npos || text.find(kSealKey, at + 1) != text.npos)
    return text;
  at += kSealKey.size();
  if (text.find('"', at) != at + kHashDigits)
    return text;
  text.replace(at, kHashDigits, kHashDigits, '0');
  absl::StatusOr<std::string> seal = sha256(text);
  if (!seal.ok())
    return seal;
  return text.replace(at, kHashDigits, *seal);
}

bool isFileName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
         });
}

void writeOptions(const CompileOptions &o, Json &out) {
  json::startObject(out);
  out["dtype"] = std::string(wordFor(o.dtype));
  out["quantization"] = std::string(wordFor(o.quantization));
  out["activations"] = std::string(wordFor(o.activations));
  out["sm_policy"] = std::string(wordFor(o.smPolicy));
  out["bank_policy"] = std::string(wordFor(o.bankPolicy));
  out["max_batch"] = o.maxBatch;
  out["max_seq"] = o.maxSeq;
  out["max_prefill"] = o.maxPrefill;
  out["keep_unreachable"] = o.keepUnreachable;
  out["pruning_ratio"] = o.pruningRatio;
  out["histogram"] = o.histogram;
  out["trace"] = o.trace;
}

std::string writeModelJson(const ModelConfig &model,
                           const CompileOptions &options) {
  json::Document out;
  json::startObject(out.root);
  writeModelConfig(model, out.root["config"]);
  writeOptions(options, out.root["options"]);
  return canonical(out.root);
}

absl::StatusOr<std::pair<ModelConfig, CompileOptions>>
readModelJson(std::string_view text, std::string_view file,
              uint32_t formatVersion) {
  absl::StatusOr<json::Document> document = json::parse(text, file);
  if (!document.ok())
    return document.status();
  json::ObjectReader in(*document, "");
  in.member("config");
  in.member("options");
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  absl::StatusOr<ModelConfig> model = modelConfigFromJson(*document, "/config");
  if (!model.ok())
    return model.status();
  absl::StatusOr<CompileOptions> options =
      optionsFromJson(*document, "/options", *model, formatVersion);
  if (!options.ok())
    return options.status();
  return std::pair(*model, *options);
}

absl::StatusOr<std::string> writeManifest(const Manifest &m) {
  json::Document out;
  Json &root = json::startObject(out.root);
  root["format"] = std::string(kFormat);
  root["format_version"] = m.formatVersion;
  root["compiler_version"] = m.compilerVersion;
  Json &target = json::startObject(root["target"]);
  target["name"] = m.target.name;
  if (absl::Status status =
          embed(m.target.json, "target description", target["description"]);
      !status.ok())
    return status;
  root["sm"] = m.sm;
  root["ptx_version"] = m.ptxVersion;
  root["minimum_driver"] = m.minimumDriver;
  Json &policies = json::startObject(root["policies"]);
  policies["sm"] = std::string(wordFor(m.smPolicy));
  policies["bank"] = std::string(wordFor(m.bankPolicy));
  Json &weights = json::startObject(root["weights"]);
  for (auto [word, kind] : weightsWords())
    if (kind == m.weights.kind)
      weights["kind"] = std::string(word);
  if (m.weights.kind == WeightsRecipe::Kind::kSynthetic)
    weights["seed"] = m.weights.seed;
  if (absl::Status status =
          embed(m.predictionJson, "prediction", root["prediction"]);
      !status.ok())
    return status;
  Json &files = json::startObject(root["files"]);
  for (const auto &[name, record] : m.files) {
    Json &file = json::startObject(files[name]);
    file["bytes"] = record.bytes;
    file["sha256"] = record.sha256;
  }
  root["seal"] = std::string(kHashDigits, '0');
  return sealManifest(canonical(root));
}

absl::StatusOr<Manifest> readManifest(std::string_view text,
                                      std::string_view file) {
  absl::StatusOr<json::Document> document = json::parse(text, file);
  if (!document.ok())
    return document.status();
  if (absl::Status status = checkFormat(*document); !status.ok())
    return status;
  Manifest m;
  json::ObjectReader in(*document, "");
  in.member("format");
  in.u32("format_version", m.formatVersion);
  in.string("compiler_version", m.compilerVersion);
  in.u32("sm", m.sm);
  in.string("ptx_version", m.ptxVersion);
  in.u32("minimum_driver", m.minimumDriver);
  in.member("target");
  in.member("policies");
  in.member("weights");
  in.member("files");
  std::string seal;
  if (m.formatVersion >= kSealedFormatVersion)
    in.string("seal", seal);
  const Json *prediction = in.member("prediction");
  if (prediction && !prediction->is_object())
    in.fail("prediction", json::describe(*prediction), "an object");
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  if (m.formatVersion >= kExpectedFormatVersion)
    if (absl::Status status = checkPredictions(*document, "/prediction");
        !status.ok())
      return status;
  m.predictionJson = canonical(*prediction);
  if (absl::Status status = readTarget(*document, m.target); !status.ok())
    return status;
  if (absl::Status status = readPolicies(*document, m); !status.ok())
    return status;
  if (absl::Status status = readWeights(*document, m.weights); !status.ok())
    return status;
  if (absl::Status status = readFiles(*document, m); !status.ok())
    return status;
  if (m.formatVersion >= kSealedFormatVersion)
    if (absl::Status status = checkSeal(text, *document, seal); !status.ok())
      return status;
  return m;
}

} // namespace grok
