// The directory NAME.grok/: reading it (everything checked before it is
// trusted), writing it (beside, then renamed) and filling in its weights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/bundle/PlanTables.h"
#include "runtime/bundle/TensorSource.h"

namespace grok {

/// What --weights left in the bundle.
struct WeightsRecipe {
  enum class Kind { kBlob, kNone, kSynthetic } kind = Kind::kNone;
  uint64_t seed = 0; // kSynthetic
  bool operator==(const WeightsRecipe &) const = default;
};

/// What the compiler was asked for, as model.json records it beside the config:
/// enough to compile again for another target from the bundle alone.
struct CompileOptions {
  DType dtype = DType::kBF16;
  Quantization quantization = Quantization::kNone;
  Activations activations = Activations::kSingle;
  SmPolicy smPolicy = SmPolicy::kAll;
  BankPolicy bankPolicy = BankPolicy::kStriped;
  uint32_t maxBatch = 8, maxSeq = 0;
  uint32_t maxPrefill = 4096; // tokens of a prefill pass at most; 0: none
  bool keepUnreachable = false;
  double pruningRatio = 0;
  std::vector<uint64_t> histogram; // per expert; empty: none given
  bool trace = false; // GPU targets: trace.ptx goes along (grokrun bench)
  bool operator==(const CompileOptions &) const = default;
};

/// The target as the manifest records it: `json` is the target file, canonical.
struct TargetRecord {
  std::string name;
  std::string json;
  bool operator==(const TargetRecord &) const = default;
};

struct FileRecord {
  uint64_t bytes = 0;
  std::string sha256; // lower-case hex; of the blob, BlobHash's
};

/// Version 6 added the prediction's expected case, and checks the whole
/// prediction. With version 5 the decode kernel writes ids into the host's
/// memory and can stay for the next turn, and a prefill kernel waits for the
/// launch before it. Version 4 added weights of 8 bits (the option
/// `quantization` and the plan's field), the plan's clusters and the manifest's
/// seal, and the blob's hash became one of chunks (BlobHash.h). Version 3 added
/// prefill: the option `max_prefill`, the plan's fields and regions,
/// prefill.ptx. Bundles of versions 2 to 5 are read as those without what came
/// later. Nothing of version 1 is read.
inline constexpr uint32_t kBundleFormatVersion = 6, kOldestFormatVersion = 2,
                          kSealedFormatVersion = 4, kChunkedHashVersion = 4,
                          kTurnsFormatVersion = 5, kOverlapFormatVersion = 5,
                          kExpectedFormatVersion = 6;

struct Manifest {
  uint32_t formatVersion = kBundleFormatVersion;
  std::string compilerVersion;
  TargetRecord target;
  uint32_t sm = 0;            // 80, 90; 0: cpu
  std::string ptxVersion;     // "8.0"; empty for cpu
  uint32_t minimumDriver = 0; // CUDA driver API version, e.g. 12000; 0 for cpu
  SmPolicy smPolicy =
      SmPolicy::kAll; // the plan's, as writeBundle finds them there
  BankPolicy bankPolicy = BankPolicy::kStriped;
  WeightsRecipe weights;
  std::string predictionJson; // the latency prediction, a JSON object
  std::map<std::string, FileRecord> files;
};

/// A bundle that was read and checked. The blob is memory-mapped.
class Bundle {
public:
  /// Structure checks: every file there with the size that the manifest says,
  /// small files' hashes, model and plan valid and consistent with each other
  /// and with the blob's size. Cheap whatever the blob's size.
  /// One that is replaced meanwhile is opened again. Its files must not be
  /// written to while the object lives: the blob stays mapped.
  static absl::StatusOr<std::shared_ptr<Bundle>> open(const std::string &path);

  /// Every hash. `progress` gets bytes done and total.
  absl::Status
  verify(const std::function<void(uint64_t, uint64_t)> &progress = {}) const;

  const std::string &path() const { return path_; }
  const ModelConfig &model() const { return model_; }
  const CompileOptions &options() const { return options_; }
  const PlanTables &plan() const { return plan_; }
  const Manifest &manifest() const { return manifest_; }
  /// The mapped blob; empty if the bundle holds none.
  std::span<const uint8_t> blob() const { return blob_; }
  /// Text of decode.ptx; empty for cpu.
  absl::StatusOr<std::string> readFile(const std::string &name) const;
  bool hasFile(const std::string &name) const {
    return manifest_.files.count(name) != 0;
  }

  ~Bundle();
  Bundle(const Bundle &) = delete;

private:
  Bundle() = default;
  std::string path_;
  ModelConfig model_;
  CompileOptions options_;
  PlanTables plan_;
  Manifest manifest_;
  std::span<const uint8_t> blob_;
  friend struct BundleReader;
};

/// Everything of a bundle but the blob, which is packed from `weights` (null
/// for kNone and kSynthetic).
struct BundleContents {
  ModelConfig model;
  CompileOptions options;
  PlanTables plan;
  Manifest manifest; // format version, policies and files are filled in by
                     // writeBundle
  std::map<std::string, std::string>
      files; // decode.ptx, plan.mlir, tokenizer.model, ...
};

/// What a caller may listen to while a bundle is written; both may be empty.
struct WriteHooks {
  std::function<void(uint64_t done, uint64_t total)> progress; // of the blob
  /// What an earlier run left (a warning), how much is to be written and how
  /// long it may take, where an earlier run is gone on with.
  std::function<void(bool warning, const std::string &message)> report;
};

/// Writes beside `path` and renames: the bundle is whole or absent. An existing
/// bundle at `path` is replaced; anything else there is an error. Goes on where
/// an earlier run with the same input was killed.
absl::Status writeBundle(const std::string &path,
                         const BundleContents &contents, TensorSource *weights,
                         const WriteHooks &hooks = {});

/// Puts a blob into an existing bundle that has none (grokrun pack),
/// atomically.
absl::Status packBundle(const std::string &path, TensorSource &weights,
                        WeightsRecipe recipe, const WriteHooks &hooks = {});

/// The blob's bytes in order, through `sink` in pieces, for writeBundle and for
/// executors that fill memory.
absl::Status
packBlob(const ModelConfig &model, const PlanTables &plan,
         TensorSource &weights,
         const std::function<absl::Status(std::span<const uint8_t>)> &sink);

/// A bundle with a blob is itself a checkpoint.
std::unique_ptr<TensorSource> bundleSource(std::shared_ptr<Bundle> bundle);
std::unique_ptr<TensorSource> syntheticSource(const ModelConfig &model,
                                              uint64_t seed);
} // namespace grok
