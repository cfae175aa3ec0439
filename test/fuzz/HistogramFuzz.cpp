// Histograms of the experts' use.
#include "compiler/Routing/Routing.h"
#include "test/fuzz/Fuzz.h"

using namespace grok;
using namespace grok::fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ModelConfig model; // of which nothing else is looked at
  model.numExperts = 4;
  absl::StatusOr<std::vector<uint64_t>> counts =
      parseHistogram(textOf(data, size), kFile, model);
  if (!counts.ok()) {
    requireRefusal(counts.status());
    return 0;
  }
  require(counts->size() == model.numExperts, "an expert has one count");
  absl::StatusOr<std::vector<uint64_t>> again =
      parseHistogram(histogramJson(*counts), kFile, model);
  require(again.ok() && *again == *counts,
          "a histogram survives its canonical form");
  return 0;
}
