// bench: how fast decode steps are and how fast they could be, how long prompts
// take, and whole requests.
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/BenchReport.h"
#include "tools/grokrun/ChromeTrace.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Output.h"
#include "tools/grokrun/PrefillReport.h"
#include "tools/grokrun/RequestPage.h"
#include "tools/grokrun/Session.h"

namespace grok::grokrun {
namespace {

/// Enough to see what repeats from step to step.
constexpr uint32_t kTraceSteps = 4;

struct Arguments {
  std::string bundle, mode = "decode", device = "auto", json, trace;
  BenchRequest request{.rows = 1, .context = 512, .steps = 1000, .seed = 0};
  PrefillBenchRequest prefill; // its tokens are also those of requests
  RequestBenchOptions requests;
  std::string deadline, report; // as written; empty: none
  uint32_t lockMhz = 0;         // 0: clocks stay as they are
  /// Options that say something to these modes only.
  std::vector<std::pair<const CLI::Option *, std::vector<std::string>>>
      restricted;
};

/// The files that were asked for. They are begun before anything is measured:
/// what cannot be written is found before the figures are there to lose.
struct Files {
  std::unique_ptr<OutputFile> json, report, trace; // null: not asked for
};

absl::StatusOr<Files> beginFiles(const Arguments &args) {
  Files files;
  for (auto [path, file] : {std::pair(&args.json, &files.json),
                            std::pair(&args.report, &files.report),
                            std::pair(&args.trace, &files.trace)}) {
    if (path->empty())
      continue;
    absl::StatusOr<std::unique_ptr<OutputFile>> begun =
        OutputFile::create(*path, 0);
    if (!begun.ok())
      return begun.status();
    *file = *std::move(begun);
  }
  return files;
}

absl::Status writeTrace(const Arguments &args, Executor &executor,
                        OutputFile &file) {
  BenchRequest request = args.request;
  request.steps = std::min(request.steps, kTraceSteps);
  absl::StatusOr<std::vector<TraceSpan>> spans = executor.trace(request);
  if (!spans.ok())
    return absl::Status(
        spans.status().code(),
        absl::StrCat("--trace: ", std::string(spans.status().message())));
  return file.finish(chromeTrace(*spans));
}

absl::Status prefillCommand(const Arguments &args, const Files &files) {
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
  std::cout << prefillText(*report) << std::flush;
  return files.json ? files.json->finish(prefillJson(*report))
                    : absl::OkStatus();
}

/// --deadline-ms, in seconds; nothing if it is not given.
absl::StatusOr<std::optional<double>> readDeadline(const Arguments &args) {
  if (args.deadline.empty())
    return std::nullopt;
  double seconds = 0;
  if (!cli::parseDeadline(args.deadline, seconds))
    return absl::InvalidArgumentError(
        absl::StrCat("--deadline-ms: found '", args.deadline, "', expected ",
                     cli::kDeadlineExpected));
  return seconds;
}

absl::Status requestCommand(const Arguments &args, const Files &files) {
  absl::StatusOr<std::optional<double>> deadline = readDeadline(args);
  if (!deadline.ok())
    return deadline.status();
  absl::StatusOr<Session> session = Session::open(
      args.bundle, args.device, args.mode == "resident" ? "--mode" : nullptr);
  if (!session.ok())
    return session.status();
  RequestBenchOptions options = args.requests;
  options.rows = args.request.rows;
  options.seed = args.request.seed;
  options.promptTokens = args.prefill.promptTokens;
  options.passTokens = args.prefill.passTokens;
  options.resident = args.mode == "resident";
  if (args.lockMhz)
    options.lockMhz = args.lockMhz;
  absl::StatusOr<RequestBenchResult> run =
      benchRequests(*session->bundle, *session->executor, options);
  if (!run.ok())
    return run.status();
  RequestReport report = requestReport(*session->bundle, *session->executor,
                                       options, *deadline, *std::move(run));
  std::cout << requestText(report) << std::flush;
  if (files.json)
    if (absl::Status s = files.json->finish(requestJson(report)); !s.ok())
      return s;
  if (!files.report)
    return absl::OkStatus();
  absl::StatusOr<std::string> page = requestPage(report, *session->bundle);
  return page.ok() ? files.report->finish(*page) : page.status();
}

absl::Status decodeCommand(const Arguments &args, const Files &files) {
  absl::StatusOr<Session> session = Session::open(args.bundle, args.device);
  if (!session.ok())
    return session.status();
  Executor &executor = *session->executor;
  if (absl::Status s =
          validateBench(args.request, executor.maxBatch(), executor.maxSeq());
      !s.ok())
    return s;
  // The trace first: it is short, and may not be there.
  if (files.trace)
    if (absl::Status s = writeTrace(args, executor, *files.trace); !s.ok())
      return s;
  absl::StatusOr<double> ceiling = executor.streamingCeiling();
  if (!ceiling.ok())
    return ceiling.status();
  absl::StatusOr<BenchResult> result = executor.bench(args.request);
  if (!result.ok())
    return result.status();
  BenchReport report = benchReport(*session->bundle, executor, args.request,
                                   *std::move(result), *ceiling);
  std::cout << benchText(report) << std::flush;
  return files.json ? files.json->finish(benchJson(report)) : absl::OkStatus();
}

absl::Status checkModes(const Arguments &args) {
  // Resident is request with another kernel.
  const std::string mode = args.mode == "resident" ? "request" : args.mode;
  for (const auto &[option, modes] : args.restricted)
    if (option->count() != 0 && !absl::c_linear_search(modes, mode))
      return absl::InvalidArgumentError(
          absl::StrCat(option->get_name(), ": found it with --mode ", args.mode,
                       ", expected --mode ", absl::StrJoin(modes, " or ")));
  return absl::OkStatus();
}

/// None takes the place of the bundle's files, nor the second that of the
/// first.
absl::Status checkFiles(const Arguments &args) {
  for (const std::string *file : {&args.json, &args.report, &args.trace})
    if (absl::Status s = checkApart(*file, {args.bundle}); !s.ok())
      return s;
  for (auto [flag, file] :
       {std::pair("--report", &args.report), std::pair("--trace", &args.trace)})
    if (!file->empty() && !args.json.empty() && isOneOutput(*file, args.json))
      return absl::InvalidArgumentError(absl::StrCat(
          flag, ": found '", *file, "' as for --json, expected another file"));
  return absl::OkStatus();
}

absl::Status benchCommand(const Arguments &args) {
  using Command = absl::Status (*)(const Arguments &, const Files &);
  const std::pair<const char *, Command> modes[] = {
      {"decode", decodeCommand},
      {"prefill", prefillCommand},
      {"request", requestCommand},
      {"resident", requestCommand}};
  for (auto [mode, command] : modes)
    if (args.mode == mode) {
      absl::Status status = checkModes(args);
      status.Update(checkFiles(args));
      if (!status.ok())
        return status;
      absl::StatusOr<Files> files = beginFiles(args);
      return files.ok() ? command(args, *files) : files.status();
    }
  return absl::InvalidArgumentError(
      absl::StrCat("--mode: found '", args.mode,
                   "', expected decode, prefill, request or resident"));
}

} // namespace

Action addBench(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "bench", "Measure a batch's steps, prompts or requests");
  addBundle(*command, args->bundle);
  auto option = [&](const char *flag, auto &value, const char *type,
                    const char *help) {
    return command->add_option(flag, value, help)->type_name(type);
  };
  option("--mode", args->mode, "MODE",
         "decode, prefill, request, or resident: requests, the kernel stays")
      ->capture_default_str();
  auto number = [&](const char *flag, auto &value, const char *type,
                    const char *help) {
    return cli::addDecimal(*command, flag, value, help)->type_name(type);
  };
  auto only = [&](std::vector<std::string> modes,
                  const CLI::Option *restricted) {
    args->restricted.emplace_back(restricted, std::move(modes));
  };
  number("--batch", args->request.rows, "B", "Rows of the batch");
  only({"decode"}, number("--context", args->request.context, "N",
                          "Decode: positions that a step attends to"));
  only({"decode"}, number("--steps", args->request.steps, "M",
                          "Decode: steps to measure, after some to warm up"));
  only({"prefill", "request"},
       number("--prompt-tokens", args->prefill.promptTokens, "N",
              "Prefill, request: tokens of each row's prompt"));
  only({"request"}, number("--new-tokens", args->requests.newTokens, "N",
                           "Request: tokens that each row gets"));
  only({"prefill", "request"},
       number("--pass-tokens", args->prefill.passTokens, "N",
              "Tokens of a prefill pass at most, 0: as compiled"));
  only({"prefill"}, number("--runs", args->prefill.runs, "R",
                           "Prefill: runs to measure, after some to warm up"));
  only({"request"},
       number("--requests", args->requests.requests, "R",
              "Request: requests to measure, after some to warm up"));
  only({"request"}, option("--deadline-ms", args->deadline, "X",
                           "Request: count those that take longer"));
  number("--seed", args->request.seed, "S", "Seed of the token ids");
  addDevice(*command, args->device);
  option("--json", args->json, "FILE",
         "Also write the numbers, and up to 100000 times");
  only({"request"}, option("--report", args->report, "FILE",
                           "Request: also write a page with plots, HTML"));
  only({"decode"},
       option("--trace", args->trace, "FILE",
              "Decode: also write when each slot does what, for Perfetto"));
  only({"request"}, number("--lock-clocks", args->lockMhz, "MHZ",
                           "Request: hold the GPU's clock there, 0: leave it"));
  return [args] { return benchCommand(*args); };
}

} // namespace grok::grokrun
