#include "tools/cli/Numbers.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace grok::cli {
namespace {

template <typename T> bool parseAll(std::string_view text, T &out) {
  auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && stop == text.data() + text.size();
}

[[noreturn]] void refuse(const std::string &flag, const std::string &text,
                         const std::string &expected) {
  throw CLI::ValidationError(
      absl::StrCat(flag, ": found '", text, "', expected ", expected));
}

template <typename Int>
CLI::Option *add(CLI::App &command, const std::string &flag, Int &out,
                 uint64_t most, const std::string &help) {
  auto read = [flag, &out, most](const std::string &text) {
    uint64_t value = 0;
    if (!parseDecimal(text, value, most))
      refuse(flag, text, absl::StrCat("an integer from 0 to ", most));
    out = Int(value);
  };
  return command.add_option_function<std::string>(flag, read, help)
      ->default_str(absl::StrCat(out));
}

} // namespace

bool parseDecimal(std::string_view text, uint64_t &out, uint64_t most) {
  return parseAll(text, out) && out <= most;
}

bool parseReal(std::string_view text, double &out) {
  return parseAll(text, out) && std::isfinite(out);
}

bool parseDeadline(std::string_view text, double &seconds) {
  constexpr double kMostMs = 1e9; // eleven days
  double ms = 0;
  if (!parseReal(text, ms) || !(ms > 0 && ms <= kMostMs))
    return false;
  seconds = ms * 1e-3;
  return true;
}

CLI::Option *addDecimal(CLI::App &command, const std::string &flag,
                        uint64_t &out, uint64_t most, const std::string &help) {
  return add(command, flag, out, most, help);
}

CLI::Option *addDecimal(CLI::App &command, const std::string &flag,
                        uint32_t &out, uint64_t most, const std::string &help) {
  return add(command, flag, out, most, help);
}

CLI::Option *addReal(CLI::App &command, const std::string &flag, float &out,
                     bool (*allowed)(double), const char *expected,
                     const std::string &help) {
  auto read = [=, &out](const std::string &text) {
    double value = 0;
    if (!parseReal(text, value) || !allowed(value))
      refuse(flag, text, expected);
    out = float(value);
  };
  return command.add_option_function<std::string>(flag, read, help)
      ->default_str(absl::StrCat(out));
}

} // namespace grok::cli
