// model.json: the canonical config and the options.
#include "runtime/bundle/Manifest.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (uint32_t version = kOldestFormatVersion; version <= kBundleFormatVersion;
       ++version) {
    auto parts = readModelJson(textOf(data, size), kFile, version);
    if (!parts.ok()) {
      requireRefusal(parts.status());
      continue;
    }
    const auto &[model, options] = *parts;
    require(model.validate().ok(), "what was read is valid");
    auto again = readModelJson(writeModelJson(model, options), kFile,
                               kBundleFormatVersion);
    require(again.ok() && *again == *parts,
            "model and options survive their canonical form");
  }
  return 0;
}
