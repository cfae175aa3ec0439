// bench: how fast decode steps are, and how fast they could be.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/BenchReport.h"
#include "tools/grokrun/ChromeTrace.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Output.h"
#include "tools/grokrun/PrefillReport.h"
#include "tools/grokrun/Session.h"

namespace grok::grokrun {
namespace {

/// Enough to see what repeats from step to step.
constexpr uint32_t kTraceSteps = 4;

struct Arguments {
  std::string bundle, mode = "decode", device = "auto", json, trace;
  BenchRequest request{.rows = 1, .context = 512, .steps = 1000, .seed = 0};
  PrefillBenchRequest prefill;
};

absl::Status writeTrace(const Arguments &args, Executor &executor) {
  BenchRequest request = args.request;
  request.steps = std::min(request.steps, kTraceSteps);
  absl::StatusOr<std::vector<TraceSpan>> spans = executor.trace(request);
  if (!spans.ok())
    return absl::Status(
        spans.status().code(),
        absl::StrCat("--trace: ", std::string(spans.status().message())));
  return writeTextFile(args.trace, chromeTrace(*spans));
}

absl::Status prefillCommand(const Arguments &args) {
  if (!args.trace.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        "--trace: found it with --mode prefill, expected --mode decode"));
  absl::StatusOr<Session> session = Session::open(args.bundle, args.device);
  if (!session.ok())
    return session.status();
  PrefillBenchRequest request = args.prefill;
  request.rows = args.request.rows;
  request.seed = args.request.seed;
  absl::StatusOr<PrefillReport> report =
      benchPrefill(*session->bundle, *session->executor, request);
  if (!report.ok())
    return report.status();
  if (!args.json.empty())
    if (absl::Status s = writeTextFile(args.json, prefillJson(*report));
        !s.ok())
      return s;
  std::cout << prefillText(*report);
  return absl::OkStatus();
}

absl::Status decodeCommand(const Arguments &args) {
  absl::StatusOr<Session> session = Session::open(args.bundle, args.device);
  if (!session.ok())
    return session.status();
  Executor &executor = *session->executor;
  if (absl::Status s =
          validateBench(args.request, executor.maxBatch(), executor.maxSeq());
      !s.ok())
    return s;
  // The trace first: it is short, and may not be there.
  if (!args.trace.empty())
    if (absl::Status s = writeTrace(args, executor); !s.ok())
      return s;
  absl::StatusOr<double> ceiling = executor.streamingCeiling();
  if (!ceiling.ok())
    return ceiling.status();
  absl::StatusOr<BenchResult> result = executor.bench(args.request);
  if (!result.ok())
    return result.status();
  BenchReport report = benchReport(*session->bundle, executor, args.request,
                                   *std::move(result), *ceiling);
  if (!args.json.empty())
    if (absl::Status s = writeTextFile(args.json, benchJson(report)); !s.ok())
      return s;
  std::cout << benchText(report);
  return absl::OkStatus();
}

absl::Status benchCommand(const Arguments &args) {
  if (args.mode == "decode")
    return decodeCommand(args);
  if (args.mode == "prefill")
    return prefillCommand(args);
  return absl::InvalidArgumentError(absl::StrCat(
      "--mode: found '", args.mode, "', expected decode or prefill"));
}

} // namespace

Action addBench(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "bench", "Measure a batch's steps or prompts against the device's speed");
  addBundle(*command, args->bundle);
  auto option = [&](const char *flag, auto &value, const char *type,
                    const char *help) {
    return command->add_option(flag, value, help)->type_name(type);
  };
  option("--mode", args->mode, "MODE", "What to measure: decode or prefill")
      ->capture_default_str();
  auto number = [&](const char *flag, auto &value, const char *type,
                    const char *help) {
    cli::addDecimal(*command, flag, value, help)->type_name(type);
  };
  number("--batch", args->request.rows, "B", "Rows of the batch");
  number("--context", args->request.context, "N",
         "Positions that a step attends to");
  number("--steps", args->request.steps, "M",
         "Steps to measure, after some to warm up");
  number("--prompt-tokens", args->prefill.promptTokens, "N",
         "Prefill: tokens of each row's prompt");
  number("--pass-tokens", args->prefill.passTokens, "N",
         "Prefill: tokens of a pass at most, 0: as compiled");
  number("--runs", args->prefill.runs, "R",
         "Prefill: runs to measure, after some to warm up");
  number("--seed", args->request.seed, "S", "Seed of the steps' token ids");
  addDevice(*command, args->device);
  option("--json", args->json, "FILE",
         "Also write the numbers, and up to 100000 steps' times");
  option("--trace", args->trace, "FILE",
         "Also write when each slot does what, for Perfetto");
  return [args] { return benchCommand(*args); };
}

} // namespace grok::grokrun
