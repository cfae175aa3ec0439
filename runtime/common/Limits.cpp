// GROK_MAX_SEQ_LEN and GROK_KV_CACHE_BUFFER_MB: both may only lower what the
// bundle was compiled for.
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "runtime/Executor.h"

namespace grok {
namespace {

constexpr uint64_t kMegabyte = 1ull << 20;

/// The variable as a positive integer; nothing if it is not set.
absl::StatusOr<std::optional<uint64_t>> readVariable(const char *name) {
  const char *text = std::getenv(name);
  if (!text)
    return std::optional<uint64_t>();
  std::string_view view(text);
  uint64_t value = 0;
  auto [end, error] =
      std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc() || end != view.data() + view.size() || value == 0)
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: found '%s', expected a positive integer", name, text));
  return std::optional<uint64_t>(value);
}

absl::StatusOr<uint32_t> resolveLength(uint32_t asked, uint32_t compiled) {
  uint64_t length = asked;
  const char *who = "maximum length";
  if (!asked) {
    who = "GROK_MAX_SEQ_LEN";
    absl::StatusOr<std::optional<uint64_t>> variable = readVariable(who);
    if (!variable.ok())
      return variable.status();
    length = variable->value_or(compiled);
  }
  if (length > compiled)
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: found %d, expected at most %d, the length that "
                        "the bundle was compiled for; it can only be lowered",
                        who, length, compiled));
  return uint32_t(length);
}

/// The reserve in bytes that was asked for, or nothing.
absl::StatusOr<std::optional<uint64_t>> askedReserve(uint64_t askedBytes) {
  if (askedBytes) {
    if (askedBytes % kKvReserveUnit)
      return absl::InvalidArgumentError(
          absl::StrFormat("KV cache reserve: found %d bytes, expected a "
                          "multiple of %d (200 MB)",
                          askedBytes, kKvReserveUnit));
    return std::optional<uint64_t>(askedBytes);
  }
  absl::StatusOr<std::optional<uint64_t>> megabytes =
      readVariable("GROK_KV_CACHE_BUFFER_MB");
  if (!megabytes.ok() || !*megabytes)
    return megabytes;
  uint64_t unit = kKvReserveUnit / kMegabyte;
  if (**megabytes % unit || **megabytes > UINT64_MAX / kMegabyte)
    return absl::InvalidArgumentError(absl::StrFormat(
        "GROK_KV_CACHE_BUFFER_MB: found %d, expected a multiple of %d",
        **megabytes, unit));
  return std::optional<uint64_t>(**megabytes * kMegabyte);
}

/// The reserve without any request: the plan's, or for entries wider than the
/// plan's the smallest multiple that holds the compiled batch and length.
uint64_t defaultReserve(const ModelConfig &model, const PlanTables &plan,
                        uint32_t elementBytes) {
  uint64_t full = alignUp(
      kvBytes(model, plan.maxBatch, plan.maxSeq, elementBytes), kKvReserveUnit);
  return full > plan.kvReserveBytes ? full : plan.kvReserveBytes;
}

} // namespace

absl::StatusOr<LoadLimits> resolveLimits(const LoadLimits &asked,
                                         const ModelConfig &model,
                                         const PlanTables &plan,
                                         uint32_t kvElementBytes) {
  absl::StatusOr<uint32_t> length = resolveLength(asked.maxSeq, plan.maxSeq);
  if (!length.ok())
    return length.status();
  absl::StatusOr<std::optional<uint64_t>> reserve = askedReserve(asked.kvBytes);
  if (!reserve.ok())
    return reserve.status();

  uint64_t most = defaultReserve(model, plan, kvElementBytes);
  uint64_t bytes = reserve->value_or(most);
  uint64_t needed = kvBytes(model, plan.maxBatch, *length, kvElementBytes);
  if (bytes > most)
    return absl::InvalidArgumentError(
        absl::StrFormat("KV cache reserve: found %d MB, expected at most %d "
                        "MB, the compiled reserve; it can only be lowered",
                        bytes / kMegabyte, most / kMegabyte));
  if (bytes < needed)
    return absl::InvalidArgumentError(absl::StrFormat(
        "KV cache reserve: found %d MB (%d bytes), expected at least %d bytes "
        "for batch %d times length %d (%d MB); raise "
        "GROK_KV_CACHE_BUFFER_MB or lower GROK_MAX_SEQ_LEN",
        bytes / kMegabyte, bytes, needed, plan.maxBatch, *length,
        alignUp(needed, kKvReserveUnit) / kMegabyte));
  return LoadLimits{*length, bytes};
}

} // namespace grok
