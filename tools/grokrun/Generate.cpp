#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "nlohmann/json.hpp"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Ids.h"
#include "tools/grokrun/Session.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::grokrun {
namespace {

struct Arguments {
  std::string bundle, prompt, ids, device = "auto";
  uint32_t count = 64;
  float temperature = 0;
  uint64_t seed = 0;
  bool ignoreEos = false, json = false;
  bool promptGiven = false, idsGiven = false;
};

/// The prompt's ids, and the tokenizer if there is one. Only --prompt needs it.
struct Prompt {
  std::vector<int32_t> ids;
  std::unique_ptr<Tokenizer> tokenizer;
};

absl::StatusOr<Prompt> readPrompt(const Arguments &args, const Bundle &bundle) {
  Prompt prompt;
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::open(bundle);
  if (tokenizer.ok())
    prompt.tokenizer = std::move(*tokenizer);
  if (!args.promptGiven) {
    absl::StatusOr<std::vector<int32_t>> ids = readIds(args.ids);
    if (!ids.ok())
      return ids.status();
    prompt.ids = std::move(*ids);
    return prompt;
  }
  if (!tokenizer.ok())
    return tokenizer.status();
  absl::StatusOr<std::vector<int32_t>> ids =
      prompt.tokenizer->encode(args.prompt);
  if (!ids.ok())
    return ids.status();
  prompt.ids = std::move(*ids);
  return prompt;
}

/// Prompt and continuation as text, or nothing without a tokenizer.
absl::StatusOr<std::optional<std::string>>
wholeText(const Prompt &prompt, const std::vector<int32_t> &newIds) {
  if (!prompt.tokenizer)
    return std::optional<std::string>();
  std::vector<int32_t> all = prompt.ids;
  all.insert(all.end(), newIds.begin(), newIds.end());
  absl::StatusOr<std::string> text = prompt.tokenizer->decode(all);
  if (!text.ok())
    return text.status();
  return std::optional<std::string>(std::move(*text));
}

void printJson(const Prompt &prompt, const std::vector<int32_t> &ids,
               const std::optional<std::string> &text, const Session &session,
               double seconds) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["prompt_ids"] = prompt.ids;
  out["ids"] = ids;
  out["text"] = text ? Json(*text) : Json();
  out["device"] = session.executor->deviceName();
  out["timings"] = {
      {"load_seconds", session.loadSeconds},
      {"run_seconds", seconds},
      {"positions_per_second",
       double(prompt.ids.size() + ids.size() - !ids.empty()) / seconds}};
  std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

absl::Status checkArguments(const Arguments &args) {
  if (args.promptGiven == args.idsGiven)
    return absl::InvalidArgumentError(
        args.idsGiven ? "found both --prompt and --ids, expected one"
                      : "found neither --prompt nor --ids, expected one");
  if (args.promptGiven && args.prompt.empty())
    return absl::InvalidArgumentError(
        "--prompt: found '', expected a text of one character or more");
  return absl::OkStatus();
}

absl::Status generateCommand(const Arguments &args) {
  if (absl::Status s = checkArguments(args); !s.ok())
    return s;
  absl::StatusOr<Session> session = Session::open(args.bundle, args.device);
  if (!session.ok())
    return session.status();
  absl::StatusOr<Prompt> prompt = readPrompt(args, *session->bundle);
  if (!prompt.ok())
    return prompt.status();
  BatchRequest request;
  request.rows = {{prompt->ids, 0, args.count}};
  request.eosId = args.ignoreEos ? -1 : session->bundle->model().eosId;
  request.temperature = args.temperature;
  request.seed = args.seed;
  absl::StatusOr<BatchResult> result = session->executor->run(request);
  if (!result.ok())
    return result.status();
  const std::vector<int32_t> &ids = result->newIds[0];
  absl::StatusOr<std::optional<std::string>> text = wholeText(*prompt, ids);
  if (!text.ok())
    return text.status();
  if (args.json)
    printJson(*prompt, ids, *text, *session, result->seconds);
  else
    std::cout << (*text && args.promptGiven ? **text : joinIds(ids)) << "\n";
  if (isatty(STDERR_FILENO))
    std::fprintf(stderr, "%zu ids in %.3f s on %s\n", ids.size(),
                 result->seconds, session->executor->deviceName().c_str());
  return absl::OkStatus();
}

} // namespace

Action addGenerate(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "generate", "Continue a prompt: text, or ids if --ids was given");
  addBundle(*command, args->bundle);
  const CLI::Option *prompt =
      command->add_option("--prompt", args->prompt, "Text to continue")
          ->type_name("TEXT");
  const CLI::Option *ids =
      command
          ->add_option("--ids", args->ids,
                       "Token ids to continue: 1,2,3 or a file")
          ->type_name("IDS");
  cli::addDecimal(*command, "-n", args->count, "Ids to generate at most")
      ->type_name("N");
  addDevice(*command, args->device);
  cli::addReal(*command, "--temperature", args->temperature,
               "Sample at this temperature; 0: greedy")
      ->type_name("T");
  cli::addDecimal(*command, "--seed", args->seed, "Seed of the sampling noise")
      ->type_name("S");
  command->add_flag("--ignore-eos", args->ignoreEos,
                    "Don't stop after the end id");
  command->add_flag("--json", args->json,
                    "Print prompt_ids, ids, text, device and timings");
  return [args, prompt, ids] {
    args->promptGiven = prompt->count() > 0;
    args->idsGiven = ids->count() > 0;
    return generateCommand(*args);
  };
}

} // namespace grok::grokrun
