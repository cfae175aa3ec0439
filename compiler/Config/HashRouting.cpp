#include "compiler/Config/HashRouting.h"

#include "absl/strings/str_cat.h"
#include "compiler/Config/Reader.h"
#include "runtime/bundle/JsonReader.h"

namespace grok {

absl::StatusOr<HashRouting> readHashRouting(const json::Document &document,
                                            uint32_t numExperts) {
  constexpr int64_t kWord = 0xffffffff;
  ConfigReader in(document, "/expert_routing");
  std::optional<std::string> type = in.string({"type"});
  if (!type)
    in.fail("type", in.has("type") ? "no string" : "no such key",
            "\"hash\"; add it");
  else if (*type != "hash")
    in.fail("type", json::shown(*type),
            "\"hash\"; leave expert_routing out for a learned top-k router");

  HashRouting h;
  h.numGroups = in.requireInteger({"num_groups"}, 1, 65535,
                                  "the number of expert groups");
  h.expertsPerGroup = in.requireInteger({"experts_per_group"}, 1, 65535,
                                        "the number of experts in a group");
  h.tokenMultiplier = in.requireInteger({"token_multiplier"}, 0, kWord,
                                        "the token id's multiplier");
  h.positionMultiplier = in.requireInteger({"position_multiplier"}, 0, kWord,
                                           "the position's multiplier");
  h.hashBits = in.requireInteger({"hash_bits"}, 1, 32,
                                 "how many low bits of the hash count");
  h.indexShift = in.requireInteger(
      {"index_shift"}, 0, 31, "the shift that turns the hash into an index");
  h.indexMask = in.requireInteger({"index_mask"}, 0, kWord,
                                  "the mask of the index in a group");
  h.positionOffsetMask =
      uint32_t(in.integer({"position_offset_mask"}, 0, kWord).value_or(0));

  if (in.ok() && uint64_t(h.numGroups) * h.expertsPerGroup != numExperts)
    in.fail("num_groups",
            absl::StrCat(h.numGroups, " groups of ", h.expertsPerGroup),
            absl::StrCat(
                "num_groups * experts_per_group to be the number of experts, ",
                numExperts));
  // The index is masked last, so the mask bounds it.
  if (in.ok() && h.indexMask >= h.expertsPerGroup)
    in.fail("index_mask", absl::StrCat(h.indexMask),
            absl::StrCat("less than experts_per_group (", h.expertsPerGroup,
                         "), so that every index is an expert of its group"));
  if (absl::Status status = in.finish(); !status.ok())
    return status;
  return h;
}

} // namespace grok
