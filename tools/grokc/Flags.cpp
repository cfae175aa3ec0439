#include "tools/grokc/Flags.h"

#include <filesystem>

#include "tools/cli/Numbers.h"

namespace grok::grokc {

absl::Status badFlag(const std::string &flag, const std::string &text,
                     const std::string &expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": found '", text, "', expected ", expected));
}

absl::StatusOr<uint32_t> flagInteger(const std::string &flag,
                                     const std::string &text, uint32_t low,
                                     uint32_t high) {
  uint64_t value = 0;
  if (!cli::parseDecimal(text, value, high) || value < low)
    return badFlag(flag, text, absl::StrCat("an integer, ", low, " .. ", high));
  return uint32_t(value);
}

absl::StatusOr<double> flagNumber(const std::string &flag,
                                  const std::string &text, double low,
                                  double high) {
  double value = 0;
  if (!cli::parseReal(text, value) || !(value >= low && value < high))
    return badFlag(
        flag, text,
        absl::StrCat("a number, at least ", low, " and less than ", high));
  return value;
}

absl::StatusOr<Target> flagTarget(const std::string &text) {
  absl::StatusOr<Target> target = findTarget(text);
  if (target.ok())
    return target;
  std::string message(target.status().message());
  bool placed = !text.empty() && message.compare(0, text.size(), text) == 0;
  return absl::Status(target.status().code(),
                      absl::StrCat(placed ? "" : "--target: ", message));
}

absl::StatusOr<WeightsRecipe> flagWeights(const std::string &text,
                                          std::string &directory) {
  WeightsRecipe recipe;
  constexpr std::string_view kSynthetic = "synthetic:";
  if (text == "none")
    return recipe;
  if (text.compare(0, kSynthetic.size(), kSynthetic) == 0) {
    recipe.kind = WeightsRecipe::Kind::kSynthetic;
    if (!cli::parseDecimal(std::string_view(text).substr(kSynthetic.size()),
                           recipe.seed))
      return badFlag("--weights", text,
                     "synthetic:SEED with an integer SEED, 0 .. 2^64 - 1");
    return recipe;
  }
  std::error_code error;
  if (!std::filesystem::exists(text, error))
    return badFlag("--weights", text,
                   "a directory or a .gguf file that is there, none or "
                   "synthetic:SEED");
  recipe.kind = WeightsRecipe::Kind::kBlob;
  directory = text;
  return recipe;
}

} // namespace grok::grokc
