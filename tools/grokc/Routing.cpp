#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/Config/Config.h"
#include "compiler/Routing/Routing.h"
#include "runtime/bundle/InputFile.h"
#include "tools/grokc/Commands.h"
#include "tools/grokc/Text.h"

namespace grok::grokc {
namespace {

struct Arguments {
  std::string config, tokens;
};

/// Probability that two tokens, drawn independently with these shares, go to
/// the same expert.
double meetShare(const LoadSummary &load) {
  double sum = 0;
  for (double share : load.expertShare)
    sum += share * share;
  return sum;
}

void printReach(const ModelConfig &model, const HashAnalysis &a) {
  const HashRouting &h = *model.hash;
  std::cout << absl::StrFormat("routing      hash: %d experts in %d groups of "
                               "%d; %d hash classes (%d bits decide)\n",
                               model.numExperts, h.numGroups, h.expertsPerGroup,
                               1u << a.bits, a.bits);
  std::vector<uint32_t> unreachable;
  for (uint32_t e = 0; e < model.numExperts; ++e)
    if (!a.reachable(e))
      unreachable.push_back(e);
  if (unreachable.empty())
    std::cout << absl::StrFormat("reach        all %d experts are reachable\n",
                                 model.numExperts);
  else
    std::cout << absl::StrFormat(
        "reach        %d of %d experts unreachable: %s\n", unreachable.size(),
        model.numExperts, ranges(unreachable));
}

/// How many hash classes meet in one expert, least and most over the reachable
/// ones.
void printClasses(const HashAnalysis &a) {
  size_t least = SIZE_MAX, most = 0;
  for (size_t e = 0; e < a.classesOfExpert.size(); ++e)
    if (a.reachable(uint32_t(e))) {
      least = std::min(least, a.classesOfExpert[e].size());
      most = std::max(most, a.classesOfExpert[e].size());
    }
  if (most)
    std::cout << absl::StrFormat(
        "collisions   %s hash classes meet in each reachable expert\n",
        least == most ? absl::StrCat(most) : absl::StrCat(least, " to ", most));
}

void printLoad(const ModelConfig &model, const char *what,
               const std::vector<uint64_t> &load, const HashAnalysis &a,
               bool counts) {
  LoadSummary s = summarizeLoad(model, load);
  uint32_t perGroup = model.hash->expertsPerGroup;
  std::cout << "\nload         " << what << "\n";
  std::cout << absl::StrFormat("  %6s %6s %10s%s  %s\n", "expert", "group",
                               "share", counts ? "     tokens" : "",
                               "hash classes");
  for (uint32_t e = 0; e < model.numExperts; ++e)
    std::cout << absl::StrFormat(
        "  %6d %6d %8.4f %%%s  %s\n", e, e / perGroup, 100 * s.expertShare[e],
        counts ? absl::StrFormat(" %10d", load[e]) : "",
        a.reachable(e) ? ranges(a.classesOfExpert[e]) : "unreachable");
  for (uint32_t g = 0; g < s.groupShare.size(); ++g)
    std::cout << absl::StrFormat("  group %d takes %.4f %%\n", g,
                                 100 * s.groupShare[g]);
  std::cout << absl::StrFormat("  busiest: expert %d, %.2f times the mean; "
                               "group %d, %.2f times the mean\n",
                               s.busiestExpert, s.expertSkew, s.busiestGroup,
                               s.groupSkew);
  std::cout << absl::StrFormat(
      "  two tokens meet in one expert in %.4f %% of cases\n",
      100 * meetShare(s));
  for (const std::string &warning : skewWarnings(model, s)) {
    std::cout.flush();
    std::fprintf(stderr, "warning: skewed load (%s): %s\n", what,
                 warning.c_str());
  }
}

absl::Status printTokens(const ModelConfig &model, const std::string &file,
                         const HashAnalysis &a) {
  absl::StatusOr<std::string> text = readInputFile(file, kMaxIdsBytes);
  if (!text.ok())
    return text.status();
  absl::StatusOr<std::vector<int64_t>> ids = parseIds(*text, file);
  if (!ids.ok())
    return ids.status();
  if (ids->empty())
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": found no ids, expected integers"));
  absl::StatusOr<std::vector<uint64_t>> load = countLoad(model, *ids);
  if (!load.ok())
    return absl::Status(
        load.status().code(),
        absl::StrCat(file, ": ", std::string(load.status().message())));
  printLoad(model,
            absl::StrFormat("as counted on %d tokens of %s", ids->size(), file)
                .c_str(),
            *load, a, true);
  return absl::OkStatus();
}

absl::Status routingCommand(const Arguments &args) {
  if (args.config.empty())
    return absl::InvalidArgumentError(
        "--config: not given, expected a config.json or a directory that holds "
        "one");
  absl::StatusOr<ParsedConfig> config = readConfig(args.config);
  if (!config.ok())
    return config.status();
  const ModelConfig &model = config->model;
  if (!model.hash) {
    if (!args.tokens.empty())
      return absl::InvalidArgumentError(
          "--tokens: found a learned router, expected hash routing; what a "
          "learned router "
          "chooses is measured with `grokrun eval --expert-histogram`");
    std::cout << absl::StrFormat(
        "routing      learned: top %d of %d experts, ties to the lower index\n"
        "reach        all %d experts are reachable\n"
        "load         known only by running: grokrun eval --expert-histogram\n",
        model.expertsPerToken, model.numExperts, model.numExperts);
    return absl::OkStatus();
  }
  absl::StatusOr<HashAnalysis> a = analyzeHash(model);
  if (!a.ok())
    return absl::Status(a.status().code(),
                        absl::StrCat(config->document.place("/expert_routing"),
                                     ": ", std::string(a.status().message())));
  printReach(model, *a);
  printClasses(*a);
  printLoad(model,
            absl::StrFormat("exact, for uniform ids and the positions 0 .. %d",
                            model.maxPositions - 1)
                .c_str(),
            a->expertOutcomes, *a, false);
  return args.tokens.empty() ? absl::OkStatus()
                             : printTokens(model, args.tokens, *a);
}

} // namespace

Action addRouting(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *c = app.add_subcommand(
      "routing",
      "Show the reach of the hash and the load of experts and groups");
  c->add_option("--config", args->config,
                "config.json, or the directory that holds it")
      ->type_name("DIR|FILE");
  c->add_option("--tokens", args->tokens,
                "also count the load on these ids, positions from 0")
      ->type_name("FILE");
  return [args] { return routingCommand(*args); };
}

} // namespace grok::grokc
