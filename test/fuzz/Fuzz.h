// What the fuzz targets share: the input as a value, and the rules that hold
// for every input. A broken rule ends the process, which keeps the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

/// One file for each target, FooFuzz.cpp, has this function; libFuzzer the
/// main.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace grok::fuzz {

/// The name that messages must give to the input.
inline constexpr const char *kFile = "INPUT";

inline std::string_view textOf(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

inline void require(bool holds, const char *rule) {
  if (holds)
    return;
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

/// A refusal blames the input, names it, and can be printed: one line of
/// bounded length.
inline void requireRefusal(const absl::Status &status,
                           std::string_view name = kFile) {
  constexpr size_t kMaxMessage = 8192;
  bool blames = absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
                absl::IsFailedPrecondition(status);
  std::string_view message(status.message().data(), status.message().size());
  bool printable = true;
  for (char c : message)
    printable &= static_cast<unsigned char>(c) >= ' ' && c != '\x7f';
  if (blames && printable && message.size() <= kMaxMessage &&
      message.find(name) != message.npos)
    return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  require(blames, "a refusal blames the input");
  require(printable, "a message has no control characters");
  require(message.size() <= kMaxMessage, "a message is not longer than a page");
  require(false, "a message names the file");
}

} // namespace grok::fuzz
