// manifest.json, with the target's description that verify reads as well.
#include "compiler/Target/Target.h"
#include "runtime/bundle/Manifest.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A mutation breaks the seal, which is checked last.
  absl::StatusOr<std::string> text =
      sealManifest(std::string(textOf(data, size)));
  require(text.ok(), "any text can be sealed");
  absl::StatusOr<Manifest> manifest = readManifest(*text, kFile);
  if (!manifest.ok()) {
    requireRefusal(manifest.status());
    return 0;
  }
  for (const auto &[name, record] : manifest->files)
    require(isFileName(name) && record.sha256.size() == 64,
            "files have plain names and whole hashes");
  // What an older one predicts was not looked at.
  if (manifest->formatVersion < kExpectedFormatVersion)
    manifest->predictionJson = R"({"clock_mhz": 1, "predictions": []})";
  manifest->formatVersion = kBundleFormatVersion;
  absl::StatusOr<std::string> written = writeManifest(*manifest);
  require(written.ok(), "a manifest that was read can be written");
  absl::StatusOr<Manifest> again = readManifest(*written, kFile);
  require(again.ok() && *writeManifest(*again) == *written,
          "a manifest survives its canonical form");
  absl::StatusOr<Target> target = parseTarget(manifest->target.json, kFile);
  if (!target.ok())
    requireRefusal(target.status());
  return 0;
}
