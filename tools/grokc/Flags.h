// Values of flags: every error names the flag, what was found and what was
// expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/Target/Target.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Names.h"

namespace grok::grokc {

/// InvalidArgument "--flag: found 'text', expected E".
absl::Status badFlag(const std::string &flag, const std::string &text,
                     const std::string &expected);

absl::StatusOr<uint32_t> flagInteger(const std::string &flag,
                                     const std::string &text, uint32_t low,
                                     uint32_t high);
/// A number with low <= value < high.
absl::StatusOr<double> flagNumber(const std::string &flag,
                                  const std::string &text, double low,
                                  double high);

/// One of a few words.
template <typename Enum>
absl::StatusOr<Enum> flagWord(const std::string &flag, const std::string &text,
                              const Words<Enum> &words) {
  std::vector<std::string> names;
  for (const auto &[name, value] : words) {
    if (name == text)
      return value;
    names.emplace_back(name);
  }
  return badFlag(flag, text, absl::StrJoin(names, " or "));
}

/// One of a few words, or "auto": no value.
template <typename Enum>
absl::StatusOr<std::optional<Enum>> flagWordOrAuto(const std::string &flag,
                                                   const std::string &text,
                                                   const Words<Enum> &words) {
  Words<std::optional<Enum>> all(words.begin(), words.end());
  all.emplace_back("auto", std::nullopt);
  return flagWord(flag, text, all);
}

/// --target: a shipped target or a description. What is wrong inside a
/// description is placed there.
absl::StatusOr<Target> flagTarget(const std::string &text);

/// --weights: a directory, "none" or "synthetic:SEED"; `directory` is set for a
/// directory.
absl::StatusOr<WeightsRecipe> flagWeights(const std::string &text,
                                          std::string &directory);

} // namespace grok::grokc
