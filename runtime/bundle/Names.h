// The words that files and flags use for the project's enumerations.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/bundle/PlanTables.h"

namespace grok {

template <typename Enum>
using Words = std::vector<std::pair<std::string_view, Enum>>;

inline Words<DType> dtypeWords() {
  return {{"bf16", DType::kBF16}, {"f16", DType::kF16}};
}
inline Words<Quantization> quantizationWords() {
  return {{"none", Quantization::kNone},
          {"int8", Quantization::kInt8},
          {"fp8", Quantization::kFp8}};
}
inline Words<Gelu> geluWords() {
  return {{"tanh", Gelu::kTanh}, {"erf", Gelu::kErf}};
}
inline Words<SmPolicy> smPolicyWords() {
  return {{"all", SmPolicy::kAll}, {"group", SmPolicy::kGroup}};
}
inline Words<BankPolicy> bankPolicyWords() {
  return {{"striped", BankPolicy::kStriped}, {"expert", BankPolicy::kExpert}};
}
inline Words<Activations> activationsWords() {
  return {{"single", Activations::kSingle}, {"split", Activations::kSplit}};
}

constexpr std::string_view wordFor(DType v) {
  return v == DType::kBF16 ? "bf16" : "f16";
}
constexpr std::string_view wordFor(Quantization v) {
  return v == Quantization::kNone   ? "none"
         : v == Quantization::kInt8 ? "int8"
                                    : "fp8";
}
constexpr std::string_view wordFor(Gelu v) {
  return v == Gelu::kTanh ? "tanh" : "erf";
}
constexpr std::string_view wordFor(SmPolicy v) {
  return v == SmPolicy::kAll ? "all" : "group";
}
constexpr std::string_view wordFor(BankPolicy v) {
  return v == BankPolicy::kStriped ? "striped" : "expert";
}
constexpr std::string_view wordFor(Activations v) {
  return v == Activations::kSingle ? "single" : "split";
}

} // namespace grok
