// The lines of grokrun serve: one JSON object each (docs/serve.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "runtime/service/Request.h"

namespace grok::serve {

/// Bytes of a line at most, its end not counted.
inline constexpr size_t kMostLineBytes = 1 << 20;

struct WireRequest {
  std::vector<int32_t> ids; // empty: `prompt` is there
  std::string prompt;
  uint32_t maxNew = 64;
  std::optional<double> deadlineMs; // from when the line was read
  bool stream = false, ignoreEos = false;
  float temperature = 0;
  uint64_t seed = 0;
};

struct ParsedLine {
  nlohmann::json id; // the caller's name of the request: a string, an integer,
                     // or null
  absl::Status status; // InvalidArgument: what is wrong with the line
  WireRequest request; // if Ok
};
ParsedLine parseLine(std::string_view line);

enum class AnswerEvent { kTokens, kDone, kError };

/// What a line of the server says about a request without an id.
struct WireAnswer {
  AnswerEvent event = AnswerEvent::kError;
  std::vector<int32_t> ids;  // unless it is an error
  std::string text;          // the same, of a request that is a text
  std::string code, message; // of an error
};
/// InvalidArgument, with the place in the line at `socket`, if it is no answer
/// to such a request.
absl::StatusOr<WireAnswer> parseAnswer(std::string_view line,
                                       const std::string &socket, bool streams,
                                       bool isText);

/// Every line below ends with a newline. Invalid UTF-8 comes out as U+FFFD.

/// Of a request that streams: its next ids, and their text if it gave a text.
std::string tokensLine(const nlohmann::json &id, std::span<const int32_t> ids,
                       const std::optional<std::string> &text);
/// The last line of a request: "done", or "error" with what there was.
std::string answerLine(const nlohmann::json &id, const service::Answer &answer,
                       const std::optional<std::string> &text);
/// The only line of a request that was not accepted.
std::string refusalLine(const nlohmann::json &id, std::string_view code,
                        std::string_view message);
/// The code of what Service::submit or parseLine refused, or of Unavailable:
/// the server takes no more.
std::string_view refusalCode(const absl::Status &status);

} // namespace grok::serve
