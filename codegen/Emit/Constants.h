// The constants of a translation unit: members of the structs that the device
// library is instantiated with. Internal to this room.
#pragma once

#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/bundle/DecodeMemory.h"
#include "runtime/bundle/ModelConfig.h"
#include "runtime/bundle/PlanTables.h"

namespace grok {

/// Collects the static constexpr members of a struct.
class Constants {
public:
  void count(const char *name, uint32_t value) {
    member("unsigned", name, absl::StrCat(value));
  }
  void bytes(const char *name, uint64_t value) {
    member("unsigned long", name, absl::StrCat(value, "ul"));
  }
  void flag(const char *name, bool value) {
    member("bool", name, value ? "true" : "false");
  }
  void index(const char *name, int value) {
    member("short", name, absl::StrCat(value));
  }
  void counts(const char *name, const std::vector<uint32_t> &values) {
    member("unsigned", absl::StrCat(name, "[", values.size(), "]"),
           absl::StrCat("{", absl::StrJoin(values, ", "), "}"));
  }
  void indices(const char *name, const std::vector<int> &values) {
    member("short", absl::StrCat(name, "[", values.size(), "]"),
           absl::StrCat("{", absl::StrJoin(values, ", "), "}"));
  }
  void offsets(const char *name, const std::vector<uint64_t> &values) {
    member("unsigned long", absl::StrCat(name, "[", values.size(), "]"),
           absl::StrCat("{", absl::StrJoin(values, ", "), "}"));
  }
  /// The double rounded once; in hexadecimal, so that nothing is lost on the
  /// way.
  void real(const char *name, double value) {
    float rounded = float(value);
    if (!std::isfinite(rounded) && bad_.empty())
      bad_ = absl::StrCat(name, ": found ", value,
                          ", expected a value in the range of float32");
    char digits[32];
    auto [end, error] =
        std::to_chars(digits, digits + sizeof(digits), std::fabs(rounded),
                      std::chars_format::hex);
    member("float", name,
           absl::StrCat(std::signbit(rounded) ? "-0x" : "0x",
                        absl::string_view(digits, size_t(end - digits)), "f"));
  }

  const std::string &text() const { return text_; }
  absl::Status status() const {
    return bad_.empty() ? absl::OkStatus() : absl::InvalidArgumentError(bad_);
  }

private:
  void member(absl::string_view type, absl::string_view name,
              absl::string_view value) {
    absl::StrAppend(&text_, "  static constexpr ", type, " ", name, " = ",
                    value, ";\n");
  }
  std::string text_;
  std::string bad_;
};

/// struct Model: what the kernels compute.
Constants modelConstants(const ModelConfig &model, DType dtype);

/// What every kernel knows of a plan.
Constants sharedPlanConstants(const PlanTables &plan, uint32_t sm);

/// Offset of a region in the arena; 0 for what this model does not need.
uint64_t offsetOf(const PlanTables &plan, const char *region);
std::vector<uint64_t> offsetsOf(const PlanTables &plan,
                                std::span<const RegionSize> regions);

} // namespace grok
