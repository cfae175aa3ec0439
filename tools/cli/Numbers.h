// Numbers on a command line: decimal, whole, and in range or refused. The
// parser's own conversion wraps what is too large and reads 010 as octal.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "CLI/CLI.hpp"

namespace grok::cli {

/// Digits alone, at most `most`.
bool parseDecimal(std::string_view text, uint64_t &out,
                  uint64_t most = std::numeric_limits<uint64_t>::max());
/// A finite number as in JSON, "0.5" or "1e-3".
bool parseReal(std::string_view text, double &out);
/// Milliseconds that a request may take, as seconds; false for what is not
/// kDeadlineExpected.
bool parseDeadline(std::string_view text, double &seconds);
inline constexpr const char *kDeadlineExpected =
    "a number of milliseconds, above 0 and at most 1e9";

/// An option for an integer of 0 .. `most`; `out` holds the default, which
/// --help shows.
CLI::Option *addDecimal(CLI::App &command, const std::string &flag,
                        uint64_t &out, uint64_t most, const std::string &help);
CLI::Option *addDecimal(CLI::App &command, const std::string &flag,
                        uint32_t &out, uint64_t most, const std::string &help);
/// Whatever the type of `out` holds.
template <typename Int>
CLI::Option *addDecimal(CLI::App &command, const std::string &flag, Int &out,
                        const std::string &help) {
  static_assert(std::is_unsigned_v<Int>, "a sign is no decimal digit");
  return addDecimal(command, flag, out, std::numeric_limits<Int>::max(), help);
}
/// An option for a number that is `allowed`; `expected` says which are.
CLI::Option *addReal(CLI::App &command, const std::string &flag, float &out,
                     bool (*allowed)(double), const char *expected,
                     const std::string &help);

} // namespace grok::cli
