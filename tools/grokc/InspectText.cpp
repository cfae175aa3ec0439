#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/cli/Printable.h"
#include "tools/cli/Text.h"
#include "tools/grokc/InspectJson.h"
#include "tools/grokc/Text.h"

namespace grok::grokc {
namespace {

using cli::grouped;
using Json = nlohmann::json;
using Numbers = std::vector<uint32_t>;

// Rows of a table of pairs before it is cut; --json has all of them.
constexpr size_t kMaxRows = 64;

/// A bundle's words are those of whoever made it.
std::string text(const Json &value) {
  return cli::printableLine(value.is_string() ? value.get<std::string>()
                                              : value.dump());
}

void printModel(std::ostream &out, const Json &r) {
  const Json &m = r["model"], &hash = m["hash_routing"];
  std::string routing =
      hash.is_null() ? absl::StrCat("learned top-",
                                    text(m["experts_per_token"]), " routing")
                     : absl::StrCat("hash routing in ",
                                    text(hash["num_groups"]), " groups");
  out << absl::StrFormat("model        vocabulary %s, hidden %s, %s layers, %s "
                         "query and %s kv heads of %s, context %s\n",
                         text(m["vocab_size"]), text(m["hidden_size"]),
                         text(m["num_layers"]), text(m["num_heads"]),
                         text(m["num_kv_heads"]), text(m["head_dim"]),
                         text(m["max_positions"]));
  out << absl::StrFormat(
      "             %s experts of %s, %s, %s%s GELU, %s head\n",
      text(m["num_experts"]), text(m["expert_width"]), routing,
      m["dense_width"] == 0
          ? ""
          : absl::StrCat("dense MLP of ", text(m["dense_width"]), ", "),
      text(m["gelu"]), m["tied_head"] == true ? "tied" : "separate");
}

void printPlan(std::ostream &out, const Json &r) {
  const Json &o = r["options"], &t = r["target"], &p = r["plan"];
  out << absl::StrFormat(
      "options      %s weights, %s activations, SM policy "
      "%s, bank policy %s, batch %s, length %s%s\n",
      o["quantization"] == "none"
          ? text(o["dtype"])
          : absl::StrCat(text(o["quantization"]), " and ", text(o["dtype"])),
      text(o["activations"]), text(o["sm_policy"]), text(o["bank_policy"]),
      text(o["max_batch"]), text(o["max_seq"]),
      o["trace"] == true ? ", traced kernel" : "");
  out << absl::StrFormat(
      "target       %s%s, planned for %s MHz\n", text(t["name"]),
      t["sm"] == 0 ? ""
                   : absl::StrCat(" (", text(t["arch"]), ", PTX ",
                                  text(t["ptx_version"]), ")"),
      text(t["clock_mhz"]));
  bool hasKernel = p["threads"] != 0;
  out << absl::StrFormat(
      "\nplan         %s slots%s, device %s of %s\n", text(p["slots"]),
      hasKernel ? absl::StrCat(" of ", text(p["threads"]), " threads") : "",
      text(p["device_index"]), text(p["device_count"]));
  if (!hasKernel)
    out << absl::StrFormat("             no decode kernel; K block %s\n",
                           text(p["k_block"]));
  else
    out << absl::StrFormat("             ring of %s chunks of %s bytes, %s in "
                           "flight; K block %s; %s bytes shared\n",
                           text(p["ring_stages"]), grouped(p["chunk_bytes"]),
                           text(p["in_flight_chunks"]), text(p["k_block"]),
                           grouped(p["shared_bytes"]));
  const Json &prefill = p["prefill"];
  if (hasKernel && prefill["tokens"] == 0)
    out << "             no prefill: prompts go through the decode kernel\n";
  else if (hasKernel)
    out << absl::StrFormat("             prefill of %s tokens a pass; tiles of "
                           "%s x %s, %s stages; "
                           "%s bytes shared\n",
                           text(prefill["tokens"]), text(prefill["tile_rows"]),
                           text(prefill["tile_tokens"]),
                           text(prefill["stages"]),
                           grouped(prefill["shared_bytes"]));
  out << absl::StrFormat("  %-14s %6s %6s %11s %6s %16s  %s\n", "matrix",
                         "tiles", "steps", "tiles/slot", "idle", "bytes",
                         "experts");
  for (const Json &m : p["matrices"]) {
    auto experts = m["experts"].get<Numbers>();
    out << absl::StrFormat("  %-14s %6s %6s %5s..%-4s %6s %16s  %s\n",
                           text(m["kind"]), text(m["tiles"]), text(m["steps"]),
                           text(m["slot_tiles_min"]), text(m["slot_tiles_max"]),
                           text(m["idle_slots"]), grouped(m["bytes"]),
                           experts.empty() ? "" : ranges(experts) + " (each)");
  }
}

void printExperts(std::ostream &out, const Json &r) {
  const Json &e = r["experts"];
  auto unreachable = e["unreachable"].get<Numbers>(),
       pruned = e["pruned"].get<Numbers>();
  out << absl::StrFormat("\nexperts      %s of %s kept: %s\n",
                         absl::StrCat(e["kept"].size()), text(e["total"]),
                         ranges(e["kept"].get<Numbers>()));
  if (!unreachable.empty())
    out << absl::StrFormat("             %d of %s experts unreachable%s: %s\n",
                           unreachable.size(), text(e["total"]),
                           r["options"]["keep_unreachable"] == true
                               ? ", kept as asked"
                               : ", left out",
                           ranges(unreachable));
  if (!pruned.empty())
    out << absl::StrFormat(
        "             %d pruned: %s; that touches %.4f %% of the tokens\n",
        pruned.size(), ranges(pruned),
        100 * e["pruning_touches"].get<double>());
}

/// A row of a table of bytes per bank; what they belong to comes last, since
/// its width varies.
void printBytes(std::ostream &out, const Json &bytes, const std::string &what) {
  out << " ";
  for (const Json &b : bytes)
    out << absl::StrFormat(" %15s", grouped(b));
  out << "  " << what << "\n";
}

void printBanks(std::ostream &out, const Json &r) {
  const Json &b = r["banks"];
  out << absl::StrFormat("\nbanks        %s, policy %s\n  %4s %16s %16s %16s\n",
                         text(b["count"]), text(b["policy"]), "bank", "offset",
                         "bytes", "used");
  for (size_t i = 0; i < b["segments"].size(); ++i) {
    const Json &s = b["segments"][i];
    out << absl::StrFormat("  %4d %16s %16s %16s\n", i, grouped(s["offset"]),
                           grouped(s["bytes"]), grouped(s["used_bytes"]));
  }
  out << "\n  bytes of each expert in banks 0 ..\n";
  for (const Json &e : b["experts"])
    printBytes(out, e["bytes"],
               absl::StrCat("expert ", text(e["expert"]), ", group ",
                            text(e["group"])));
  if (!b["classes"].empty())
    out << "\n  bytes of each hash class in banks 0 ..\n";
  for (size_t i = 0; i < std::min(b["classes"].size(), kMaxRows); ++i) {
    const Json &c = b["classes"][i];
    auto experts = c["experts"].get<Numbers>();
    printBytes(out, c["bytes"],
               absl::StrCat("class ", ranges(c["classes"].get<Numbers>()),
                            experts.empty() ? ": dropped"
                                            : ": expert " + ranges(experts)));
  }
  if (b["classes"].size() > kMaxRows)
    out << "  ... all of them with --json\n";
}

void printCollisions(std::ostream &out, const Json &r) {
  const Json &all = r["banks"]["collisions"];
  if (all.empty()) {
    out << "\ncollisions   none: no two kept experts of a group share a bank "
           "at any slot\n";
    return;
  }
  out << absl::StrFormat(
      "\ncollisions   %d pairs of experts that run together share a bank\n",
      all.size());
  for (size_t i = 0; i < std::min(all.size(), kMaxRows); ++i)
    out << absl::StrFormat("  group %s: experts %s and %s, at %s slots\n",
                           text(all[i]["group"]), text(all[i]["experts"][0]),
                           text(all[i]["experts"][1]), text(all[i]["slots"]));
  if (all.size() > kMaxRows)
    out << "  ... all of them with --json\n";
}

void printMemory(std::ostream &out, const Json &r) {
  const Json &m = r["memory"];
  out << absl::StrFormat("\nmemory       %s bytes needed (weights %s, arena "
                         "%s), %s on the device\n",
                         grouped(m["needed_bytes"]), grouped(m["blob_bytes"]),
                         grouped(m["arena_bytes"]), grouped(m["device_bytes"]));
  out << absl::StrFormat("  %-12s %16s %16s  %s\n", "region", "offset", "bytes",
                         "alive");
  for (const Json &a : m["arena"])
    out << absl::StrFormat("  %-12s %16s %16s  %s .. %s\n", text(a["name"]),
                           grouped(a["offset"]), grouped(a["bytes"]),
                           text(a["first_phase"]), text(a["last_phase"]));
  out << absl::StrFormat("  the KV reserve is %s bytes\n",
                         grouped(m["kv_reserve_bytes"]));
}

/// A case of a prediction: "123.4 us (3 experts; head 1.0,
/// ...)".
std::string outcome(const Json &o) {
  std::string terms;
  if (o.contains("terms") && o["terms"].is_object())
    for (const auto &[name, us] : o["terms"].items())
      if (us.is_number() && us != 0.0)
        absl::StrAppend(&terms, terms.empty() ? "" : ", ",
                        cli::printableLine(name.substr(0, name.rfind("_us"))),
                        " ", absl::StrFormat("%.1f", us.get<double>()));
  return absl::StrFormat("%12.1f us, experts of a layer %.4g: %s",
                         o["us"].get<double>(), o["experts"].get<double>(),
                         terms);
}

bool isOutcome(const Json &o) {
  return o.is_object() && o.contains("us") && o["us"].is_number() &&
         o.contains("experts") && o["experts"].is_number();
}

/// Latency by its cases. Of older bundles the manifest's reader did not look at
/// the prediction's members, so they are checked here.
void printPrediction(std::ostream &out, const Json &p) {
  if (!p.is_object() || !p.contains("predictions") ||
      !p["predictions"].is_array()) {
    out << "\nprediction   " << text(p) << "\n";
    return;
  }
  out << "\nprediction   best and worst over all routing outcomes, expected of "
         "random ids\n";
  for (const Json &one : p["predictions"]) {
    if (!one.is_object() || !one.contains("best") || !one.contains("worst") ||
        !isOutcome(one["best"]) || !isOutcome(one["worst"])) {
      out << "  " << text(one) << "\n";
      continue;
    }
    out << absl::StrFormat("  %s, batch %s, context %s, %s new\n",
                           text(one.value("scope", Json("?"))),
                           text(one.value("batch", Json())),
                           text(one.value("context", Json())),
                           text(one.value("generated", Json())));
    for (const char *name : {"best", "expected", "worst"})
      if (one.contains(name) && isOutcome(one[name]))
        out << absl::StrFormat("    %-8s %s\n", name, outcome(one[name]));
    if (one.value("exhaustive", Json(true)) == Json(false))
      out << "    best and worst are bounds, which no choice of experts "
             "need come to\n";
  }
}

void printFiles(std::ostream &out, const Json &r) {
  const Json &w = r["weights"];
  out << "\nfiles        weights: " << text(w["kind"])
      << (w.contains("seed") ? absl::StrCat(", seed ", text(w["seed"])) : "")
      << "\n";
  for (const auto &[name, f] : r["files"].items())
    out << absl::StrFormat("  %-18s %16s  sha256 %s\n",
                           cli::printableLine(name), grouped(f["bytes"]),
                           text(f["sha256"]));
}

} // namespace

std::string inspectText(const nlohmann::json &report) {
  std::ostringstream out;
  out << absl::StrFormat("bundle       %s, format %s, by grokc %s\n",
                         text(report["bundle"]), text(report["format_version"]),
                         text(report["compiler"]));
  printModel(out, report);
  printPlan(out, report);
  printExperts(out, report);
  printBanks(out, report);
  printCollisions(out, report);
  printMemory(out, report);
  printPrediction(out, report["prediction"]);
  printFiles(out, report);
  return out.str();
}

} // namespace grok::grokc
