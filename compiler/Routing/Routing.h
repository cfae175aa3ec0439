// What can be known of routing before the first request: which experts the hash
// reaches, how the load falls on experts and groups, and which experts pruning
// drops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/bundle/ModelConfig.h"

namespace grok {

/// Low hash bits that decide expert and group. With a power of two of groups,
/// bits above those of the group and of the masked index change nothing;
/// otherwise the remainder depends on all of them.
uint32_t decidingBits(const HashRouting &hash);

/// The bits of a position's offset that reach the masked index: what is added
/// below its highest bit can carry into it.
uint32_t decidingOffset(const HashRouting &hash);

/// The exact analysis of hash routing for token ids uniform over 32 bits and
/// positions uniform over the context.
struct HashAnalysis {
  /// Outcomes that lead to each expert, out of `outcomes`; 0: unreachable.
  std::vector<uint64_t> expertOutcomes;
  uint64_t outcomes = 0;
  /// Bits of the hash that decide; classes are the values 0 .. 2^bits - 1 of
  /// these bits.
  uint32_t bits = 0;
  /// Hash classes that lead to an expert at some position, ascending; empty
  /// lists when there are more than kMaxListedClasses of them.
  std::vector<std::vector<uint32_t>> classesOfExpert;

  uint32_t reachableExperts() const;
  bool reachable(uint32_t expert) const { return expertOutcomes[expert] != 0; }
};

inline constexpr uint32_t kMaxListedClasses = 4096;
/// Largest number of deciding hash bits that is enumerated.
inline constexpr uint32_t kMaxHashBits = 24;

/// Enumerates the hash values and position offsets. FailedPrecondition if more
/// than kMaxHashBits bits decide; InvalidArgument if `model` has a learned
/// router.
absl::StatusOr<HashAnalysis> analyzeHash(const ModelConfig &model);

/// How a load falls on experts and groups; for a learned router all experts are
/// one group.
struct LoadSummary {
  std::vector<double> expertShare; // sums to 1
  std::vector<double> groupShare;
  uint32_t busiestExpert = 0, busiestGroup = 0;
  double expertSkew = 0; // busiest over mean of all experts
  double groupSkew = 0;  // busiest over mean of all groups
};
LoadSummary summarizeLoad(const ModelConfig &model,
                          std::span<const uint64_t> load);

/// Skew above this is worth a warning.
inline constexpr double kSkewWarning = 2.0;
/// "expert 3 takes 25.0 % of the tokens, 8.0 times the mean" and the like;
/// empty: nothing to say.
std::vector<std::string> skewWarnings(const ModelConfig &model,
                                      const LoadSummary &summary);

/// Tokens per expert for the ids of one sequence, positions from 0.
/// InvalidArgument if an id is outside the vocabulary (with its index) or
/// `model` has a learned router.
absl::StatusOr<std::vector<uint64_t>> countLoad(const ModelConfig &model,
                                                std::span<const int64_t> ids);

/// An ids file: integers separated by commas or white space. InvalidArgument
/// "FILE:LINE: ..." else.
absl::StatusOr<std::vector<int64_t>> parseIds(std::string_view text,
                                              std::string_view file);

/// {"histogram": [count per expert]}, as `grokrun eval --expert-histogram`
/// writes it.
absl::StatusOr<std::vector<uint64_t>> parseHistogram(std::string_view text,
                                                     std::string_view file,
                                                     const ModelConfig &model);
std::string histogramJson(std::span<const uint64_t> histogram);

struct PruningChoice {
  std::vector<uint32_t> dropped; // ascending; reachable experts only
  double touchedShare =
      0; // of tokens (of expert choices with a learned router)
};

/// Drops floor(ratio * reachable experts), least used first, ties by the higher
/// index. Without a histogram the exact reach of the hash decides.
/// InvalidArgument if ratio is outside [0, 1), if the histogram does not fit
/// the model (its length, or counts on experts that the hash cannot reach), or
/// if a learned router has none.
absl::StatusOr<PruningChoice> choosePruned(const ModelConfig &model,
                                           double ratio,
                                           std::span<const uint64_t> histogram);

} // namespace grok
