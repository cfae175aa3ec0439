#include "tools/report/BundleSections.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/Names.h"
#include "runtime/bundle/PlanCheck.h"
#include "runtime/bundle/Prediction.h"
#include "tools/cli/Records.h"
#include "tools/cli/Text.h"
#include "tools/report/PlanChart.h"
#include "tools/report/Plot.h"

namespace grok::report {
namespace {

using cli::grouped;

constexpr double kMiB = 1 << 20;

void addPrediction(Page &page, const std::vector<Prediction> &all) {
  if (!all.empty())
    page.heading("Predicted latency");
  for (bool request : {false, true}) {
    std::vector<StackedBar> bars;
    for (const Prediction &prediction : all) {
      const PredictionKey &key = prediction.key;
      if (key.request != request)
        continue;
      std::string what =
          request
              ? absl::StrFormat("batch %d, %d + %d ids", key.batch, key.context,
                                key.generated)
              : absl::StrFormat("batch %d, context %d", key.batch, key.context);
      auto bar = [&](const char *name, const Prediction::Case &chosen) {
        StackedBar &one = bars.emplace_back(StackedBar{what + name, {}});
        for (const auto &[term, seconds] : chosen.terms)
          if (seconds > 0)
            one.parts.emplace_back(term, seconds * (request ? 1e3 : 1e6));
      };
      bar(", best", prediction.best);
      if (prediction.expected)
        bar(", expected", *prediction.expected);
      bar(", worst", prediction.worst);
    }
    if (!bars.empty())
      page.figure(
          stackedBars(request ? "Predicted time of a request by its terms"
                              : "Predicted time of a step by its terms",
                      request ? "ms" : "us", bars),
          request ? "A request: best and worst over every routing outcome, and "
                    "expected of random ids."
                  : "A decode step: best and worst over every routing outcome, "
                    "and expected of random ids.");
  }
}

/// Used bytes of each bank by what they belong to, all layers.
std::vector<std::map<std::string, double>> bankBytes(const ModelConfig &model,
                                                     const PlanTables &plan) {
  std::vector<std::map<std::string, double>> banks(plan.banks.size());
  for (const PlanMatrix &m : plan.matrices) {
    const char *kind =
        !isPerLayer(m.kind) ? "head"
        : m.kind == MatrixKind::kQkv || m.kind == MatrixKind::kAttnOut
            ? "attention"
        : isOfExpert(m.kind) ? "experts"
                             : "dense MLP";
    const double layers = isPerLayer(m.kind) ? model.numLayers : 1;
    for (const SlotExtent &s : m.slots)
      if (s.tileCount)
        banks[s.bank][kind] += layers * double(extentBytes(plan, m, s)) / kMiB;
  }
  return banks;
}

void addBanks(Page &page, const ModelConfig &model, const PlanTables &plan) {
  page.heading("Bytes of each bank");
  std::vector<std::map<std::string, double>> bytes = bankBytes(model, plan);
  std::vector<StackedBar> bars;
  for (size_t b = 0; b != bytes.size(); ++b) {
    StackedBar &bar = bars.emplace_back();
    bar.name = absl::StrCat("bank ", b);
    double rest = double(plan.banks[b].usedBytes) / kMiB;
    for (const char *kind : {"attention", "experts", "dense MLP", "head"})
      if (double mib = bytes[b][kind]; mib > 0) {
        bar.parts.emplace_back(kind, mib);
        rest -= mib;
      }
    bar.parts.emplace_back("vectors, embedding", std::max(rest, 0.0));
  }
  page.figure(
      stackedBars("Bytes in each bank by what they belong to", "MiB", bars),
      absl::StrCat("Bank policy ", std::string(wordFor(plan.bankPolicy)), "."));
}

void addMemory(Page &page, const PlanTables &plan, uint64_t deviceBytes) {
  page.heading("Memory");
  const ArenaRegion &kv = plan.arena.back();
  const uint64_t needed = plan.blobBytes + plan.arenaBytes;
  StackedBar device{"the device",
                    {{"weights", double(plan.blobBytes) / kMiB},
                     {"buffers", double(kv.offset) / kMiB},
                     {"KV cache", double(plan.kvReserveBytes) / kMiB}}};
  if (deviceBytes > needed)
    device.parts.emplace_back("free", double(deviceBytes - needed) / kMiB);
  page.figure(
      stackedBars("What of the device's memory is taken", "MiB", {device}),
      absl::StrFormat("%s of %s bytes are needed; all of them are "
                      "taken when the bundle is loaded.",
                      grouped(needed), grouped(deviceBytes)));
  StackedBar buffers{"buffers", {}};
  std::vector<std::vector<std::string>> rows;
  auto phase = [](uint32_t p) {
    return std::string(p < kNumPhases ? kPhaseNames[p] : "");
  };
  for (const ArenaRegion &r : plan.arena) {
    rows.push_back({r.name, grouped(r.offset), grouped(r.bytes),
                    phase(r.firstPhase) + " .. " + phase(r.lastPhase)});
    if (&r != &kv)
      buffers.parts.emplace_back(r.name, double(r.bytes) / kMiB);
  }
  if (!buffers.parts.empty())
    page.figure(stackedBars("The arena's buffers before the KV cache", "MiB",
                            {buffers}),
                "The arena before the KV cache, in the order of the "
                "addresses.");
  page.table({"region", "offset", "bytes", "alive"}, rows);
}

} // namespace

absl::Status addBundle(Page &page, const Bundle &bundle) {
  absl::StatusOr<cli::Records> records = cli::readRecords(bundle);
  if (!records.ok())
    return records.status();
  addPrediction(page, predictionsOf(bundle.manifest().predictionJson));
  page.heading("Which slot reads what");
  page.figure(planChart(bundle.plan()),
              absl::StrFormat(
                  "The %d slots of the plan (one an SM) from top to bottom, "
                  "the matrices of a layer in the order of its phases, and "
                  "the head. The darker, the more tiles; grey slots are idle. "
                  "Attention and merge read no weights: their tasks are dealt "
                  "to the slots in turn.",
                  bundle.plan().slots));
  addBanks(page, bundle.model(), bundle.plan());
  addMemory(page, bundle.plan(), records->target.memoryBytes);
  return absl::OkStatus();
}

absl::StatusOr<std::string> bundlePage(const Bundle &bundle) {
  Page page(
      absl::StrCat(bundle.path(), " for ", bundle.manifest().target.name));
  if (absl::Status s = addBundle(page, bundle); !s.ok())
    return s;
  return page.html();
}

} // namespace grok::report
