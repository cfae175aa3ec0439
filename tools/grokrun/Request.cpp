#include <sys/socket.h>

#include <cerrno>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "runtime/bundle/FileIO.h"
#include "runtime/bundle/Json.h"
#include "runtime/tokenizer/Utf8.h"
#include "tools/cli/Numbers.h"
#include "tools/grokrun/Commands.h"
#include "tools/grokrun/Ids.h"
#include "tools/grokrun/Question.h"
#include "tools/grokrun/serve/Connection.h"
#include "tools/grokrun/serve/Protocol.h"
#include "tools/grokrun/serve/SocketFile.h"

namespace grok::grokrun {
namespace {

using Json = nlohmann::ordered_json;

/// Of what the server says about an error; a path may be in it.
constexpr size_t kMostMessageBytes = 8192;

struct Arguments : Question {
  std::string socket;
  uint64_t deadlineMs = 0;
  bool json = false;
};

absl::StatusOr<Json> requestOf(const Arguments &args) {
  if (args.promptGiven() == args.idsGiven())
    return absl::InvalidArgumentError(
        absl::StrCat("found ", args.idsGiven() ? "both" : "none",
                     " of --prompt and --ids, expected one"));
  if (args.stream && args.idsGiven() && !args.json)
    return absl::InvalidArgumentError(
        "--stream: found --ids beside it, expected text to print as it comes, "
        "or --json");
  if (replaceInvalid(args.prompt) != args.prompt)
    return absl::InvalidArgumentError(
        "--prompt: found bytes that are no UTF-8, expected a text");
  Json request = Json::object();
  if (args.promptGiven()) {
    request["prompt"] = args.prompt;
  } else {
    absl::StatusOr<std::vector<int32_t>> ids = readIds(args.ids);
    if (!ids.ok())
      return ids.status();
    request["ids"] = *ids;
  }
  request["max_new_tokens"] = args.count;
  if (args.deadlineMs)
    request["deadline_ms"] = args.deadlineMs;
  request["stream"] = args.stream;
  request["ignore_eos"] = args.ignoreEos;
  request["temperature"] = args.temperature;
  request["seed"] = args.seed;
  return request;
}

absl::Status send(const serve::Descriptor &socket, const std::string &path,
                  std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent =
        ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR)
      return systemError(path, "writing", errno);
    bytes.remove_prefix(size_t(std::max<ssize_t>(sent, 0)));
  }
  return absl::OkStatus();
}

/// The next line, without its end; `rest`: what was read beyond it.
absl::StatusOr<std::string> receiveLine(const serve::Descriptor &socket,
                                        const std::string &path,
                                        std::string &rest) {
  size_t end;
  while ((end = rest.find('\n')) == rest.npos) {
    if (rest.size() > serve::kMostOutputBytes)
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": found a line of more than ", serve::kMostOutputBytes,
          " bytes, expected at most so many; is it grokrun serve that listens "
          "there?"));
    char bytes[16384];
    ssize_t got = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (got == 0)
      return absl::UnavailableError(
          absl::StrCat(path, ": found the end of the connection, expected an "
                             "answer; the server has gone"));
    if (got < 0 && errno != EINTR)
      return systemError(path, "reading", errno);
    rest.append(bytes, size_t(std::max<ssize_t>(got, 0)));
  }
  std::string line = rest.substr(0, end);
  rest.erase(0, end + 1);
  return line;
}

/// Prints what a line of the server says; true if it is the last one. `shown`:
/// what was printed of the answer's text.
absl::StatusOr<bool> show(const Arguments &args, const std::string &line,
                          std::string &shown) {
  absl::StatusOr<serve::WireAnswer> answer =
      serve::parseAnswer(line, args.socket, args.stream, args.promptGiven());
  if (!answer.ok())
    return answer.status();
  const bool last = answer->event == serve::AnswerEvent::kDone;
  // The last line has the whole text, the others what came with their ids.
  if (last && !answer->text.starts_with(shown))
    return absl::InvalidArgumentError(absl::StrCat(
        args.socket, ": found a text that is not the one of the lines before, "
                     "expected one that begins with it"));
  if (args.json)
    std::cout << line << "\n";
  if (answer->event == serve::AnswerEvent::kError)
    return absl::FailedPreconditionError(
        absl::StrCat(json::printable(answer->code), ": ",
                     json::printable(answer->message, kMostMessageBytes)));
  if (last)
    answer->text.erase(0, shown.size());
  shown += answer->text;
  if (!args.json && args.promptGiven())
    std::cout << answer->text << (last ? "\n" : "");
  else if (!args.json)
    std::cout << joinIds(answer->ids) << "\n";
  std::cout.flush();
  return last;
}

absl::Status requestCommand(const Arguments &args) {
  absl::StatusOr<Json> request = requestOf(args);
  if (!request.ok())
    return request.status();
  absl::StatusOr<serve::Descriptor> socket = serve::connectTo(args.socket);
  if (!socket.ok())
    return socket.status();
  std::string line =
      request->dump(-1, ' ', false, Json::error_handler_t::strict) + "\n";
  if (absl::Status s = send(*socket, args.socket, line); !s.ok())
    return s;
  std::string rest;
  std::string shown;
  while (true) {
    absl::StatusOr<std::string> answer =
        receiveLine(*socket, args.socket, rest);
    if (!answer.ok())
      return answer.status();
    absl::StatusOr<bool> last = show(args, *answer, shown);
    if (!last.ok() || *last)
      return last.status();
  }
}

} // namespace

Action addRequest(CLI::App &app) {
  auto args = std::make_shared<Arguments>();
  CLI::App *command =
      app.add_subcommand("request", "Ask a server that grokrun serve started");
  command->add_option("--socket", args->socket, "Where the server listens")
      ->type_name("PATH")
      ->required();
  addPrompt(*command, *args);
  cli::addDecimal(*command, "-n", args->count, "Ids to generate at most")
      ->type_name("N");
  cli::addDecimal(*command, "--deadline-ms", args->deadlineMs,
                  "Milliseconds that the answer may take; 0: any")
      ->type_name("MS");
  addSampling(*command, *args);
  command->add_flag("--json", args->json, "Print the server's lines");
  return [args] { return requestCommand(*args); };
}

} // namespace grok::grokrun
