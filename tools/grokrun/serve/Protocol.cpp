#include "tools/grokrun/serve/Protocol.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "runtime/Executor.h"
#include "runtime/bundle/JsonReader.h"

namespace grok::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kMostDepth = 8;
constexpr size_t kMostIdBytes = 256;
constexpr double kMostDeadlineMs = 1e12;

/// The line's "id", if it is one.
nlohmann::json idOf(const nlohmann::json &root) {
  if (!root.is_object())
    return nullptr;
  auto it = root.find("id");
  bool usable = it != root.end() &&
                (it->is_number_integer() ||
                 (it->is_string() &&
                  it->get_ref<const std::string &>().size() <= kMostIdBytes));
  return usable ? *it : nlohmann::json();
}

/// `least`: how many ids there must be.
void readIds(json::ObjectReader &reader, const nlohmann::json *ids,
             size_t least, std::vector<int32_t> &out) {
  if (!ids)
    return;
  if (!ids->is_array() || ids->size() < least)
    return reader.fail("ids", json::describe(*ids),
                       least ? "an array of one token id or more"
                             : "an array of token ids");
  out.reserve(ids->size());
  for (const nlohmann::json &id : *ids) {
    constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
    if (!id.is_number_unsigned() || id.get<uint64_t>() > kMost)
      return reader.fail("ids", json::describe(id),
                         "token ids, integers from 0 on");
    out.push_back(id.get<int32_t>());
  }
}

template <class Read>
void readOptional(json::ObjectReader &reader, const std::string &key,
                  const Read &read) {
  if (reader.optional(key))
    read(key);
}

absl::Status read(const json::Document &document, const nlohmann::json &id,
                  WireRequest &out) {
  json::ObjectReader reader(document, "");
  if (const nlohmann::json *given = reader.optional("id");
      given && id.is_null())
    reader.fail("id", json::describe(*given),
                absl::StrCat("a string of at most ", kMostIdBytes,
                             " bytes or an integer"));
  readIds(reader, reader.optional("ids"), 1, out.ids);
  readOptional(reader, "prompt", [&](const auto &key) {
    reader.string(key, out.prompt);
    if (reader.ok() && out.prompt.empty())
      reader.fail(key, "\"\"", "a text of one character or more");
  });
  readOptional(reader, "max_new_tokens",
               [&](const auto &key) { reader.u32(key, out.maxNew); });
  readOptional(reader, "deadline_ms", [&](const auto &key) {
    double value = 0;
    reader.number(key, value);
    if (reader.ok() && !(value > 0 && value <= kMostDeadlineMs))
      reader.fail(key, absl::StrCat(value),
                  absl::StrCat("a positive number, at most ", kMostDeadlineMs));
    out.deadlineMs = value;
  });
  readOptional(reader, "stream",
               [&](const auto &key) { reader.boolean(key, out.stream); });
  readOptional(reader, "ignore_eos",
               [&](const auto &key) { reader.boolean(key, out.ignoreEos); });
  readOptional(reader, "temperature", [&](const auto &key) {
    double value = 0;
    reader.number(key, value);
    if (reader.ok() && !isTemperature(value))
      reader.fail(key, absl::StrCat(value), kTemperatureExpected);
    out.temperature = float(value);
  });
  readOptional(reader, "seed",
               [&](const auto &key) { reader.u64(key, out.seed); });
  if (absl::Status status = reader.finish(); !status.ok())
    return status;
  if (out.ids.empty() == out.prompt.empty())
    return absl::InvalidArgumentError(
        absl::StrCat(document.file, ": found ",
                     out.ids.empty() ? "neither 'ids' nor 'prompt'"
                                     : "both 'ids' and 'prompt'",
                     ", expected one of them"));
  return absl::OkStatus();
}

/// Keys that are not asked for may come with a later server.
absl::Status readAnswer(const json::Document &document, bool streams,
                        bool isText, WireAnswer &out) {
  json::ObjectReader reader(document, "");
  if (const nlohmann::json *id = reader.optional("id"))
    reader.fail("id", json::describe(*id), "null, as in the request");
  using Words = std::vector<std::pair<std::string_view, AnswerEvent>>;
  Words words = {{"done", AnswerEvent::kDone}, {"error", AnswerEvent::kError}};
  if (streams)
    words.emplace_back("tokens", AnswerEvent::kTokens);
  reader.choice("event", out.event, words);
  if (out.event == AnswerEvent::kError) {
    reader.string("code", out.code);
    reader.string("message", out.message);
  } else {
    readIds(reader, reader.member("ids"), 0, out.ids);
    if (isText)
      reader.string("text", out.text);
  }
  return reader.ok() ? absl::OkStatus() : reader.finish();
}

std::string finished(const Json &line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

double milliseconds(double seconds) { return std::round(seconds * 1e6) / 1e3; }

/// Times that never came are null.
Json timings(const service::Times &times) {
  auto orNull = [](double seconds) {
    return seconds > 0 ? Json(milliseconds(seconds)) : Json();
  };
  return {{"queue_ms", orNull(times.started)},
          {"first_token_ms", orNull(times.firstId)},
          {"total_ms", milliseconds(times.answered)}};
}

} // namespace

ParsedLine parseLine(std::string_view line) {
  ParsedLine parsed;
  absl::StatusOr<json::Document> document =
      json::parse(line, "request", {.depth = kMostDepth, .lines = false});
  if (!document.ok()) {
    parsed.status = document.status();
    return parsed;
  }
  parsed.id = idOf(document->root);
  parsed.status = read(*document, parsed.id, parsed.request);
  return parsed;
}

absl::StatusOr<WireAnswer> parseAnswer(std::string_view line,
                                       const std::string &socket, bool streams,
                                       bool isText) {
  absl::StatusOr<json::Document> document =
      json::parse(line, socket, {.lines = false});
  WireAnswer answer;
  absl::Status status = document.ok()
                            ? readAnswer(*document, streams, isText, answer)
                            : document.status();
  if (status.ok())
    return answer;
  return absl::InvalidArgumentError(absl::StrCat(
      std::string(status.message()),
      "; is it grokrun serve of this version that listens there?"));
}

std::string tokensLine(const nlohmann::json &id, std::span<const int32_t> ids,
                       const std::optional<std::string> &text) {
  Json line{{"id", id}, {"event", "tokens"}, {"ids", ids}};
  if (text)
    line["text"] = *text;
  return finished(line);
}

std::string answerLine(const nlohmann::json &id, const service::Answer &answer,
                       const std::optional<std::string> &text) {
  Json line{{"id", id}};
  if (answer.status.ok()) {
    line["event"] = "done";
    line["finish"] = answer.stopped ? "stop" : "length";
  } else {
    line["event"] = "error";
    line["code"] = absl::IsDeadlineExceeded(answer.status) ? "deadline_exceeded"
                                                           : "internal";
    line["message"] = std::string(answer.status.message());
  }
  line["ids"] = answer.ids;
  if (text)
    line["text"] = *text;
  line["timings"] = timings(answer.times);
  return finished(line);
}

std::string refusalLine(const nlohmann::json &id, std::string_view code,
                        std::string_view message) {
  return finished(
      {{"id", id}, {"event", "error"}, {"code", code}, {"message", message}});
}

std::string_view refusalCode(const absl::Status &status) {
  switch (status.code()) {
  case absl::StatusCode::kResourceExhausted:
    return "queue_full";
  case absl::StatusCode::kUnavailable:
    return "shutting_down";
  default:
    return "invalid_request";
  }
}

} // namespace grok::serve
