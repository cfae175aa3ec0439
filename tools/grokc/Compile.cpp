#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "compiler/Config/Config.h"
#include "compiler/Pipeline/Pipeline.h"
#include "compiler/Routing/Routing.h"
#include "runtime/bundle/InputFile.h"
#include "runtime/bundle/Manifest.h"
#include "runtime/bundle/OutputFile.h"
#include "tools/cli/Numbers.h"
#include "tools/grokc/Commands.h"
#include "tools/grokc/Flags.h"
#include "tools/grokc/Progress.h"

namespace grok::grokc {
namespace {

namespace fs = std::filesystem;

/// The command line as it was written; empty: not given.
struct Arguments {
  std::string config, target, weights, output, dtype, maxBatch = "8", maxSeq,
                                                      maxPrefill;
  std::string smPolicy = "all", bankPolicy = "striped", activations = "single",
              gelu;
  std::string pruningRatio, histogram, emit = "bundle", shape, deadline;
  bool keepUnreachable = false, allowOversize = false, trace = false;
};

/// What --dtype asks of the weights; operands stay of the config's type where
/// these have 8 bits.
struct WeightType {
  std::optional<DType> dtype;
  Quantization quantization = Quantization::kNone;
};

Words<WeightType> weightWords() {
  Words<WeightType> words;
  for (auto [word, dtype] : dtypeWords())
    words.push_back({word, {dtype}});
  for (auto [word, quantization] : quantizationWords())
    if (quantization != Quantization::kNone)
      words.push_back({word, {std::nullopt, quantization}});
  return words;
}

/// --request: what was asked for is predicted as it is, or not at all.
absl::Status readShape(const Arguments &args, CompileRequest &request) {
  if (args.shape.empty())
    return absl::OkStatus();
  const std::string_view text = args.shape;
  const size_t plus = std::min(text.find('+'), text.size() - 1);
  const uint32_t row = request.options.maxSeq ? request.options.maxSeq
                                              : request.model.defaultMaxSeq();
  uint64_t prompt = 0, generated = 0;
  if (!cli::parseDecimal(text.substr(0, plus), prompt, row) ||
      !cli::parseDecimal(text.substr(plus + 1), generated, row) || !prompt ||
      !generated || prompt + generated > row)
    return badFlag(
        "--request", args.shape,
        absl::StrCat("PROMPT+NEW ids, at least 1+1, together at most "
                     "the ",
                     row, " positions of a row"));
  request.shape = {uint32_t(prompt), uint32_t(generated)};
  return absl::OkStatus();
}

absl::Status readDeadline(const Arguments &args, CompileRequest &request) {
  if (args.deadline.empty())
    return absl::OkStatus();
  double seconds = 0;
  if (!cli::parseDeadline(args.deadline, seconds))
    return badFlag("--deadline-ms", args.deadline, cli::kDeadlineExpected);
  if (request.emit == EmitPhase::kGrok)
    return absl::InvalidArgumentError(
        "--deadline-ms: found --emit=grok beside it, expected --emit=plan or a "
        "later phase: the plan is what a request's time is predicted from");
  request.deadline = seconds;
  return absl::OkStatus();
}

absl::Status readOptions(const Arguments &args, CompileRequest &request) {
  CompileOptions &o = request.options;
  o.dtype = request.model.checkpointDType;
  if (!args.dtype.empty()) {
    auto weights = flagWord<WeightType>("--dtype", args.dtype, weightWords());
    if (!weights.ok())
      return weights.status();
    o.dtype = weights->dtype.value_or(o.dtype);
    o.quantization = weights->quantization;
  }
  auto batch = flagInteger("--max-batch", args.maxBatch, 1, 8);
  if (!batch.ok())
    return batch.status();
  o.maxBatch = *batch;
  if (!args.maxSeq.empty()) {
    auto seq =
        flagInteger("--max-seq", args.maxSeq, 1, request.model.defaultMaxSeq());
    if (!seq.ok())
      return seq.status();
    o.maxSeq = *seq;
  }
  // Prefill multiplies weights of 16 bits only.
  o.maxPrefill = o.quantization == Quantization::kNone ? 4096 : 0;
  if (!args.maxPrefill.empty()) {
    auto prefill =
        flagInteger("--max-prefill", args.maxPrefill, 0, kMostPrefillTokens);
    if (!prefill.ok())
      return prefill.status();
    o.maxPrefill = *prefill;
  }
  auto sm = flagWordOrAuto("--sm-policy", args.smPolicy, smPolicyWords());
  if (!sm.ok())
    return sm.status();
  request.autoSmPolicy = !*sm;
  o.smPolicy = sm->value_or(o.smPolicy);
  auto bank =
      flagWordOrAuto("--bank-policy", args.bankPolicy, bankPolicyWords());
  if (!bank.ok())
    return bank.status();
  request.autoBankPolicy = !*bank;
  o.bankPolicy = bank->value_or(o.bankPolicy);
  auto activations = flagWord<Activations>("--activations", args.activations,
                                           activationsWords());
  if (!activations.ok())
    return activations.status();
  o.activations = *activations;
  o.keepUnreachable = args.keepUnreachable;
  o.trace = args.trace;
  for (auto read : {readShape, readDeadline})
    if (absl::Status status = read(args, request); !status.ok())
      return status;
  if (o.trace && request.target.isCpu())
    return absl::InvalidArgumentError(
        absl::StrCat("--trace: found the target '", request.target.name,
                     "', expected a GPU; it runs no PTX"));
  return absl::OkStatus();
}

absl::Status readPruning(const Arguments &args, CompileRequest &request) {
  if (args.pruningRatio.empty())
    return args.histogram.empty()
               ? absl::OkStatus()
               : badFlag("--expert-histogram", args.histogram,
                         "--expert-pruning-ratio beside it, which says how "
                         "much to drop");
  auto ratio = flagNumber("--expert-pruning-ratio", args.pruningRatio, 0, 1);
  if (!ratio.ok())
    return ratio.status();
  request.options.pruningRatio = *ratio;
  if (args.histogram.empty())
    return absl::OkStatus();
  absl::StatusOr<std::string> text =
      readInputFile(args.histogram, kMaxTextBytes);
  if (!text.ok())
    return text.status();
  absl::StatusOr<std::vector<uint64_t>> histogram =
      parseHistogram(*text, args.histogram, request.model);
  if (!histogram.ok())
    return histogram.status();
  request.options.histogram = *std::move(histogram);
  return absl::OkStatus();
}

/// The directory itself, or that of the file.
std::string directoryOf(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error) ? path
                                       : fs::path(path).parent_path().string();
}

/// The tokenizer of a directory, unless there is one already.
absl::Status findTokenizer(const std::string &directory,
                           CompileRequest &request) {
  if (!request.tokenizer.empty())
    return absl::OkStatus();
  for (const char *name : {kSentencePieceFile, kBytePairFile}) {
    fs::path file = fs::path(directory) / name;
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error)))
      continue;
    if (!request.tokenizer.empty())
      return absl::InvalidArgumentError(
          absl::StrCat(file.string(), ": found beside ", request.tokenizer,
                       ", expected one tokenizer; move the other one away"));
    request.tokenizer = file.string();
  }
  return absl::OkStatus();
}

/// The weights that --weights names; without it, those beside the config, whose
/// directory may be named as one of its words.
absl::StatusOr<WeightsRecipe> weightsOf(const Arguments &args,
                                        CompileRequest &request) {
  std::error_code error;
  if (!args.weights.empty())
    return flagWeights(args.weights, request.checkpoint);
  if (request.emit != EmitPhase::kBundle)
    return WeightsRecipe(); // no earlier phase looks at them
  if (!fs::is_directory(args.config, error))
    return absl::InvalidArgumentError(absl::StrCat(
        "--weights: not given and --config is the file ", args.config,
        ", expected a checkpoint, none or synthetic:SEED"));
  request.checkpoint = args.config;
  return WeightsRecipe{.kind = WeightsRecipe::Kind::kBlob};
}

absl::Status readWeights(const Arguments &args, CompileRequest &request) {
  absl::StatusOr<WeightsRecipe> recipe = weightsOf(args, request);
  if (!recipe.ok())
    return recipe.status();
  request.weights = *recipe;
  for (const std::string &path : {request.checkpoint, args.config})
    if (absl::Status status = findTokenizer(directoryOf(path), request);
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::StatusOr<CompileRequest> readRequest(const Arguments &args) {
  CompileRequest request;
  if (args.config.empty())
    return absl::InvalidArgumentError(
        "--config: not given, expected a config.json or a directory that holds "
        "one");
  std::optional<EmitPhase> emit = parseEmitPhase(args.emit);
  if (!emit)
    return badFlag("--emit", args.emit, "grok, plan, ptx or bundle");
  request.emit = *emit;
  if (request.emit == EmitPhase::kBundle && args.output.empty())
    return absl::InvalidArgumentError(
        "-o: not given, expected the bundle to write, OUT.grok");
  std::optional<Gelu> gelu;
  if (!args.gelu.empty()) {
    auto word = flagWord<Gelu>("--gelu", args.gelu, geluWords());
    if (!word.ok())
      return word.status();
    gelu = *word;
  }
  absl::StatusOr<Target> target = flagTarget(args.target);
  if (!target.ok())
    return target.status();
  request.target = *std::move(target);
  absl::StatusOr<ParsedConfig> config = readConfig(args.config, gelu);
  if (!config.ok())
    return config.status();
  request.model = config->model;
  request.configFile = config->document.file;
  request.configLines = config->document.lines;
  request.allowOversize = args.allowOversize;
  request.output = request.emit == EmitPhase::kBundle ? args.output : "";
  for (auto *read : {&readOptions, &readPruning, &readWeights})
    if (absl::Status status = read(args, request); !status.ok())
      return status;
  return request;
}

/// Text of an earlier phase: to a file, whole or not at all, or to standard
/// output.
absl::Status writeText(const std::string &text, const std::string &output) {
  if (output.empty()) {
    std::cout << text;
    return absl::OkStatus();
  }
  return writeTextFile(output, text);
}

/// A bundle replaces a bundle only, text whatever has its name.
absl::Status checkTextOutput(const Arguments &args,
                             const CompileRequest &request) {
  if (request.emit == EmitPhase::kBundle)
    return absl::OkStatus();
  const std::vector<std::string> shipped = shippedTargets();
  const bool file = std::ranges::find(shipped, args.target) == shipped.end();
  return checkApart(args.output,
                    {args.config, request.checkpoint, args.histogram,
                     file ? args.target : std::string()});
}

absl::Status compileCommand(const Arguments &args) {
  absl::StatusOr<CompileRequest> request = readRequest(args);
  if (!request.ok())
    return request.status();
  if (absl::Status status = checkTextOutput(args, *request); !status.ok())
    return status;
  std::ostringstream text;
  if (absl::Status status = compile(*request, text, consoleHooks());
      !status.ok())
    return status;
  return request->emit == EmitPhase::kBundle
             ? absl::OkStatus()
             : writeText(text.str(), args.output);
}

} // namespace

Action addCompile(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *c = app.add_subcommand(
      "compile", "Compile a config and its weights for a target");
  auto option = [&](const char *flag, std::string &value, const char *type,
                    const char *help) {
    c->add_option(flag, value, help)->type_name(type);
  };
  option("--config", args->config, "DIR|FILE",
         "config.json, or the directory that holds it");
  option("--target", args->target, "NAME|FILE",
         "the part to compile for; an error without it lists them");
  option("--weights", args->weights, "PATH|none|synthetic:SEED",
         "checkpoint, or .gguf file (default: the --config directory)");
  option("-o", args->output, "OUT.grok",
         "the bundle to write; for other --emit a text file");
  option("--dtype", args->dtype, "bf16|f16|int8|fp8",
         "type of weights (default: the config's)");
  option("--max-batch", args->maxBatch, "N",
         "rows of a batch at most, 1 .. 8 (default 8)");
  option("--max-seq", args->maxSeq, "N",
         "positions of a row at most (default min(config, 8192))");
  option("--max-prefill", args->maxPrefill, "N",
         "prompt tokens of a pass; 0: by decode (default 4096; 8-bit: 0)");
  option("--sm-policy", args->smPolicy, "all|group|auto",
         "SMs of an expert: all, or its group's (default all)");
  option("--bank-policy", args->bankPolicy, "striped|expert|auto",
         "banks of an expert: all, or one (default striped)");
  option("--activations", args->activations, "single|split",
         "16-bit values of an operand: 1 or 2 (default single)");
  option("--gelu", args->gelu, "tanh|erf",
         "instead of what the config says or implies");
  option("--expert-pruning-ratio", args->pruningRatio, "R",
         "drop the least used part R of the experts, 0 <= R < 1");
  option("--expert-histogram", args->histogram, "FILE",
         "use of the experts, by grokrun eval");
  option("--request", args->shape, "PROMPT+NEW",
         "ids of the request that is predicted (default 512+64)");
  option("--deadline-ms", args->deadline, "X",
         "refuse if the worst predicted request takes longer");
  option("--emit", args->emit, "PHASE",
         "stop at grok, plan, ptx or bundle (default bundle)");
  c->add_flag("--keep-unreachable-experts", args->keepUnreachable,
              "keep weights that no token can reach");
  c->add_flag("--trace", args->trace,
              "add trace.ptx, for grokrun bench --trace");
  c->add_flag("--allow-oversize", args->allowOversize,
              "compile what the device cannot hold");
  return [args] { return compileCommand(*args); };
}

} // namespace grok::grokc
