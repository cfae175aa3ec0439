#include "tools/grokc/InspectJson.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/Json.h"
#include "runtime/bundle/ModelJson.h"
#include "runtime/bundle/Names.h"
#include "runtime/bundle/PlanCheck.h"
#include "tools/cli/Records.h"
#include "tools/grokc/BankReport.h"

namespace grok::grokc {
namespace {

using Json = nlohmann::json;

const char *kindName(MatrixKind kind) {
  switch (kind) {
  case MatrixKind::kQkv:
    return "qkv";
  case MatrixKind::kAttnOut:
    return "attn_out";
  case MatrixKind::kGateUp:
    return "gate_up";
  case MatrixKind::kDenseGateUp:
    return "dense_gate_up";
  case MatrixKind::kDown:
    return "down";
  case MatrixKind::kDenseDown:
    return "dense_down";
  case MatrixKind::kHead:
    return "head";
  }
  return "";
}

/// The histogram is as long as there are experts; expertsJson says what it
/// decided.
nlohmann::json optionsJson(const CompileOptions &options) {
  nlohmann::json out = nlohmann::json::object();
  writeOptions(options, out);
  out.erase("histogram");
  return out;
}

/// How a matrix falls on the slots. Matrices of several experts that fall alike
/// are one row.
Json matricesJson(const PlanTables &plan) {
  Json rows = Json::array();
  for (const PlanMatrix &m : plan.matrices) {
    uint32_t least = UINT32_MAX, most = 0, idle = 0;
    for (const SlotExtent &s : m.slots) {
      most = std::max(most, s.tileCount);
      if (s.tileCount)
        least = std::min(least, s.tileCount);
      idle += s.tileCount == 0;
    }
    Json row = {{"kind", kindName(m.kind)},
                {"tiles", m.tiles},
                {"steps", m.steps},
                {"slot_tiles_min", most ? least : 0},
                {"slot_tiles_max", most},
                {"idle_slots", idle},
                {"bytes", extentBytes(plan.quantization, m.tiles, m.steps)},
                {"experts", Json::array()}};
    auto alike = std::find_if(rows.begin(), rows.end(), [&](Json other) {
      other["experts"] = Json::array();
      return other == row;
    });
    Json &place = alike == rows.end() ? rows.emplace_back(row) : *alike;
    if (isOfExpert(m.kind))
      place["experts"].push_back(m.expert);
  }
  return rows;
}

Json planJson(const PlanTables &plan) {
  return {{"slots", plan.slots},
          {"threads", plan.threads},
          {"cluster", plan.cluster},
          {"shared_bytes", plan.sharedBytes},
          {"ring_stages", plan.ringStages},
          {"chunk_bytes", plan.chunkBytes},
          {"in_flight_chunks", plan.inFlightChunks},
          {"k_block", plan.blockSteps * kTileK},
          {"prefill",
           {{"tokens", plan.prefill.tokens},
            {"tile_rows", kTileHeight},
            {"tile_tokens", plan.prefill.tileTokens},
            {"stages", plan.prefill.stages},
            {"shared_bytes", plan.prefill.sharedBytes}}},
          {"device_index", plan.deviceIndex},
          {"device_count", plan.deviceCount},
          {"matrices", matricesJson(plan)}};
}

Json expertsJson(const Bundle &bundle, const cli::Records &records) {
  const ModelConfig &model = bundle.model();
  std::vector<uint32_t> kept, pruned, unreachable;
  for (uint32_t e = 0; e < bundle.plan().experts.size(); ++e) {
    if (bundle.plan().experts[e] == PlanTables::Expert::kKept)
      kept.push_back(e);
    if (bundle.plan().experts[e] == PlanTables::Expert::kPruned)
      pruned.push_back(e);
  }
  if (records.hash)
    for (uint32_t e = 0; e < model.numExperts; ++e)
      if (!records.hash->reachable(e))
        unreachable.push_back(e);
  Json out = {{"total", model.numExperts},
              {"kept", kept},
              {"pruned", pruned},
              {"unreachable", unreachable}};
  if (records.pruning)
    out["pruning_touches"] = records.pruning->touchedShare;
  return out;
}

Json banksJson(const Bundle &bundle) {
  BankReport report = bankReport(bundle.model(), bundle.plan());
  Json segments = Json::array(), experts = Json::array(),
       classes = Json::array(), collisions = Json::array();
  for (const BankSegment &s : bundle.plan().banks)
    segments.push_back({{"offset", s.offset},
                        {"bytes", s.bytes},
                        {"used_bytes", s.usedBytes}});
  for (const ExpertBanks &e : report.experts)
    experts.push_back(
        {{"expert", e.expert}, {"group", e.group}, {"bytes", e.bytes}});
  for (const ClassBanks &c : report.classes)
    classes.push_back(
        {{"classes", c.classes}, {"experts", c.experts}, {"bytes", c.bytes}});
  for (const BankCollision &c : report.collisions)
    collisions.push_back({{"group", c.group},
                          {"experts", {c.first, c.second}},
                          {"slots", c.slots}});
  return {{"count", bundle.plan().banks.size()},
          {"policy", std::string(wordFor(bundle.plan().bankPolicy))},
          {"segments", segments},
          {"experts", experts},
          {"classes", classes},
          {"collisions", collisions}};
}

Json memoryJson(const PlanTables &plan, const Target &target) {
  Json arena = Json::array();
  for (const ArenaRegion &r : plan.arena)
    arena.push_back(
        {{"name", r.name},
         {"offset", r.offset},
         {"bytes", r.bytes},
         {"first_phase",
          r.firstPhase < kNumPhases ? kPhaseNames[r.firstPhase] : ""},
         {"last_phase",
          r.lastPhase < kNumPhases ? kPhaseNames[r.lastPhase] : ""}});
  return {{"blob_bytes", plan.blobBytes},
          {"arena_bytes", plan.arenaBytes},
          {"kv_reserve_bytes", plan.kvReserveBytes},
          {"needed_bytes", plan.blobBytes + plan.arenaBytes},
          {"device_bytes", target.memoryBytes},
          {"arena", arena}};
}

Json weightsJson(const WeightsRecipe &recipe) {
  switch (recipe.kind) {
  case WeightsRecipe::Kind::kBlob:
    return {{"kind", "blob"}};
  case WeightsRecipe::Kind::kNone:
    return {{"kind", "none"}};
  case WeightsRecipe::Kind::kSynthetic:
    return {{"kind", "synthetic"}, {"seed", recipe.seed}};
  }
  return nullptr;
}

} // namespace

absl::StatusOr<nlohmann::json> inspectJson(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest();
  absl::StatusOr<cli::Records> records = cli::readRecords(bundle);
  if (!records.ok())
    return records.status();
  absl::StatusOr<json::Document> target =
      json::parse(records->target.toJson(), "target");
  if (!target.ok())
    return target.status();
  Json files = Json::object();
  for (const auto &[name, record] : manifest.files)
    files[name] = {{"bytes", record.bytes}, {"sha256", record.sha256}};
  nlohmann::json model = nlohmann::json::object();
  writeModelConfig(bundle.model(), model);
  return Json{{"bundle", bundle.path()},
              {"format_version", manifest.formatVersion},
              {"compiler", manifest.compilerVersion},
              {"model", model},
              {"options", optionsJson(bundle.options())},
              {"target", target->root},
              {"plan", planJson(bundle.plan())},
              {"experts", expertsJson(bundle, *records)},
              {"banks", banksJson(bundle)},
              {"memory", memoryJson(bundle.plan(), records->target)},
              {"prediction", records->prediction.root},
              {"weights", weightsJson(manifest.weights)},
              {"files", files}};
}

} // namespace grok::grokc
