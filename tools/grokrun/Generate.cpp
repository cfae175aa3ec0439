#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/AnswerText.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Continuation.h"
#include "tools/grokrun/Ids.h"
#include "tools/grokrun/Question.h"
#include "tools/grokrun/Session.h"
#include "tools/grokrun/Tokenizer.h"

namespace grok::grokrun {
namespace {

struct Arguments : Question {
  std::string bundle, device = "auto";
  Chat chat;
  bool json = false;

  bool isChat() const { return !chat.turns.empty(); }
  bool isText() const { return promptGiven() || isChat(); }
};

/// The prompt's ids, and the tokenizer if there is one. Only text needs it.
struct Prompt {
  std::vector<int32_t> ids;
  std::unique_ptr<Tokenizer> tokenizer;
  size_t hidden = 0; // ids that are not shown: a conversation so far
};

absl::StatusOr<Prompt> readPrompt(const Arguments &args, const Bundle &bundle) {
  Prompt prompt;
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer =
      Tokenizer::open(bundle);
  if (tokenizer.ok())
    prompt.tokenizer = std::move(*tokenizer);
  else if (args.isText())
    return tokenizer.status();
  absl::StatusOr<std::vector<int32_t>> ids =
      args.isChat()        ? prompt.tokenizer->encodeChat(args.chat)
      : args.promptGiven() ? prompt.tokenizer->encode(args.prompt)
                           : readIds(args.ids);
  if (!ids.ok())
    return ids.status();
  prompt.ids = std::move(*ids);
  prompt.hidden = args.isChat() ? prompt.ids.size() : 0;
  return prompt;
}

/// The config's end id; with text also those that the tokenizer's file names.
absl::StatusOr<std::vector<int32_t>>
stopIdsOf(const Arguments &args, const Prompt &prompt, const Bundle &bundle) {
  if (args.isText() && !args.ignoreEos)
    return textStopIds(bundle.model(), *prompt.tokenizer);
  std::vector<int32_t> ids;
  if (bundle.model().eosId >= 0 && !args.ignoreEos)
    ids.push_back(int32_t(bundle.model().eosId));
  return ids;
}

/// The text of prompt and new ids, where there is a tokenizer.
class Shown {
public:
  explicit Shown(const Prompt &prompt)
      : waiting_(prompt.ids.begin() + ptrdiff_t(prompt.hidden),
                 prompt.ids.end()) {
    if (prompt.tokenizer)
      text_.emplace(*prompt.tokenizer);
  }

  /// What follows with the new ids behind those that were shown; the prompt's
  /// text comes first. Nothing without a tokenizer.
  absl::StatusOr<std::optional<std::string>> add(std::span<const int32_t> ids,
                                                 bool last) {
    if (!text_)
      return std::optional<std::string>();
    waiting_.insert(waiting_.end(), ids.begin() + ptrdiff_t(shown_), ids.end());
    shown_ = ids.size();
    absl::StatusOr<std::string> more =
        text_->add(std::exchange(waiting_, {}), last);
    if (!more.ok())
      return more.status();
    return std::optional<std::string>(*std::move(more));
  }

private:
  std::vector<int32_t> waiting_; // ids that are not in the text yet
  size_t shown_ = 0;             // new ids that are
  std::optional<AnswerText> text_;
};

void printJson(const Prompt &prompt, const Continuation &made,
               const std::optional<std::string> &text, const Session &session) {
  using Json = nlohmann::ordered_json;
  Json out = Json::object();
  out["prompt_ids"] = prompt.ids;
  out["ids"] = made.ids;
  out["text"] = text ? Json(*text) : Json();
  out["device"] = session.executor->deviceName();
  out["timings"] = {
      {"load_seconds", session.loadSeconds},
      {"run_seconds", made.seconds},
      {"positions_per_second",
       double(prompt.ids.size() + made.ids.size() - !made.ids.empty()) /
           made.seconds}};
  std::cout << out.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
}

absl::Status checkArguments(const Arguments &args) {
  int given = args.promptGiven() + args.idsGiven() + args.isChat();
  if (given != 1)
    return absl::InvalidArgumentError(
        given ? "found more than one of --prompt, --ids and --chat, expected "
                "one"
              : "found none of --prompt, --ids and --chat, expected one");
  if (args.isChat() && args.chat.turns.size() % 2 == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "--chat: found ", args.chat.turns.size(),
        " turns, expected an odd number: the user has the first word and the "
        "last"));
  if (!args.chat.system.empty() && !args.isChat())
    return absl::InvalidArgumentError(
        "--system: found it without --chat, expected a conversation");
  if (args.stream && (args.json || args.idsGiven()))
    return absl::InvalidArgumentError(
        absl::StrCat("--stream: found ", args.json ? "--json" : "--ids",
                     " beside it, expected text to print as it comes"));
  return absl::OkStatus();
}

absl::StatusOr<Continuation> run(const Arguments &args, const Prompt &prompt,
                                 Session &session) {
  ContinueOptions options;
  absl::StatusOr<std::vector<int32_t>> stop =
      stopIdsOf(args, prompt, *session.bundle);
  if (!stop.ok())
    return stop.status();
  options.count = args.count;
  options.stopIds = *std::move(stop);
  options.temperature = args.temperature;
  options.seed = args.seed;
  Shown shown(prompt);
  // A separator has a text in some files: what ends the text is not shown.
  auto textOf = [&](const std::vector<int32_t> &ids, bool stopped, bool last) {
    return shown.add(std::span(ids).first(ids.size() - stopped), last);
  };
  if (args.stream)
    options.onIds = [&](const std::vector<int32_t> &ids) -> absl::Status {
      bool stopped =
          !ids.empty() && std::ranges::find(options.stopIds, ids.back()) !=
                              options.stopIds.end();
      absl::StatusOr<std::optional<std::string>> text =
          textOf(ids, stopped, false);
      if (text.ok() && *text)
        std::cout << **text << std::flush;
      return text.status();
    };
  absl::StatusOr<Continuation> made = continueIds(
      *session.executor, session.bundle->model(), prompt.ids, options);
  if (!made.ok())
    return made;
  absl::StatusOr<std::optional<std::string>> text =
      textOf(made->ids, made->stopped, true);
  if (!text.ok())
    return text.status();
  if (args.json)
    printJson(prompt, *made, *text, session);
  else if (*text && args.isText())
    std::cout << **text;
  else
    std::cout << joinIds(made->ids);
  if (!args.json)
    std::cout << "\n";
  return made;
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
  absl::StatusOr<Continuation> made = run(args, *prompt, *session);
  if (!made.ok())
    return made.status();
  if (isatty(STDERR_FILENO))
    std::fprintf(stderr, "%zu ids in %.3f s on %s\n", made->ids.size(),
                 made->seconds, session->executor->deviceName().c_str());
  return absl::OkStatus();
}

} // namespace

Action addGenerate(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand(
      "generate", "Continue a prompt: text, or ids if --ids was given");
  addBundle(*command, args->bundle);
  addPrompt(*command, *args);
  command
      ->add_option("--chat", args->chat.turns,
                   "A message to answer; again for what follows in turn")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--system", args->chat.system,
                   "What the conversation begins with")
      ->type_name("TEXT");
  cli::addDecimal(*command, "-n", args->count, "Ids to generate at most")
      ->type_name("N");
  addDevice(*command, args->device);
  addSampling(*command, *args);
  command->add_flag("--json", args->json,
                    "Print prompt_ids, ids, text, device and timings");
  return [args] { return generateCommand(*args); };
}

} // namespace grok::grokrun
