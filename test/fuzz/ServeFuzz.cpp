// Lines of grokrun serve: what a client sends, and the lines that answer it.
#include <cmath>
#include <string>

#include "runtime/Executor.h"
#include "test/fuzz/Fuzz.h"
#include "tools/grokrun/serve/Protocol.h"

using namespace grok;
using namespace grok::fuzz;
using namespace grok::serve;

namespace {

constexpr size_t kMostIdBytes = 256; // docs/serve.md

/// The request as a line with every key.
std::string canonical(const ParsedLine &parsed) {
  const WireRequest &request = parsed.request;
  nlohmann::json line = {{"id", parsed.id},
                         {"max_new_tokens", request.maxNew},
                         {"stream", request.stream},
                         {"ignore_eos", request.ignoreEos},
                         {"temperature", request.temperature},
                         {"seed", request.seed}};
  if (request.ids.empty())
    line["prompt"] = request.prompt;
  else
    line["ids"] = request.ids;
  if (request.deadlineMs)
    line["deadline_ms"] = *request.deadlineMs;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::strict);
}

void requireSound(const WireRequest &request) {
  require(request.ids.empty() != request.prompt.empty(),
          "a request has ids or a prompt");
  for (int32_t id : request.ids)
    require(id >= 0, "ids are not negative");
  require(isTemperature(request.temperature), "a temperature is in its bounds");
  require(!request.deadlineMs ||
              (std::isfinite(*request.deadlineMs) && *request.deadlineMs > 0),
          "a deadline is finite and positive");
}

/// What is sent back is one line, and JSON whatever it quotes.
void requireLine(const std::string &line, const nlohmann::json &id) {
  require(line.find('\n') == line.size() - 1, "an answer is one line");
  nlohmann::json answer = nlohmann::json::parse(line, nullptr, false);
  require(answer.is_object() && answer["id"] == id,
          "an answer is JSON and names its request");
}

void answerWith(const ParsedLine &parsed, std::string_view text) {
  requireLine(tokensLine(parsed.id, parsed.request.ids, std::string(text)),
              parsed.id);
  service::Answer answer;
  answer.ids = parsed.request.ids;
  requireLine(answerLine(parsed.id, answer, std::string(text)), parsed.id);
  answer.status = absl::InternalError(std::string(text));
  requireLine(answerLine(parsed.id, answer, std::nullopt), parsed.id);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = textOf(data, size);
  ParsedLine parsed = parseLine(text);
  require(parsed.id.is_null() || parsed.id.is_number_integer() ||
              (parsed.id.is_string() &&
               parsed.id.get_ref<const std::string &>().size() <= kMostIdBytes),
          "a request's name is a short string or an integer");
  if (!parsed.status.ok()) {
    requireRefusal(parsed.status, "request");
    requireLine(refusalLine(parsed.id, refusalCode(parsed.status),
                            std::string(parsed.status.message())),
                parsed.id);
    return 0;
  }
  requireSound(parsed.request);
  const std::string line = canonical(parsed);
  ParsedLine again = parseLine(line);
  require(again.status.ok() && canonical(again) == line,
          "a request survives its canonical form");
  answerWith(parsed, text); // the input is as good a text as any
  return 0;
}
