// Checks of requests, the same for every executor.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "runtime/Executor.h"

namespace grok {
namespace {

absl::Status validateRow(const RowRequest &row, size_t index,
                         const ModelConfig &model, uint32_t maxSeq) {
  if (row.idle)
    return row.ids.empty() && row.start == 0 && row.maxNew == 0
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrFormat(
                     "row %d: found ids in an idle row, expected none", index));
  if (row.ids.empty())
    return absl::InvalidArgumentError(
        absl::StrFormat("row %d: found no ids, expected at least one", index));
  if (row.ids.size() > maxSeq)
    return absl::InvalidArgumentError(
        absl::StrFormat("row %d: found %d ids, expected at most %d, the length "
                        "in use; shorten the prompt",
                        index, row.ids.size(), maxSeq));
  if (row.start >= row.ids.size())
    return absl::InvalidArgumentError(
        absl::StrFormat("row %d: found start %d, expected less than the %d ids",
                        index, row.start, row.ids.size()));
  auto bad = std::find_if(row.ids.begin(), row.ids.end(), [&](int32_t id) {
    return id < 0 || uint32_t(id) >= model.vocabSize;
  });
  if (bad != row.ids.end())
    return absl::InvalidArgumentError(absl::StrFormat(
        "row %d: found id %d at position %d, expected 0 to %d", index, *bad,
        bad - row.ids.begin(), model.vocabSize - 1));
  // Ids 0 .. maxSeq - 1 have a KV entry; the last generated id needs none, but
  // it counts as part of the row.
  if (row.maxNew > maxSeq - row.ids.size())
    return absl::InvalidArgumentError(
        absl::StrFormat("row %d: found %d ids and %d to generate, %d in all, "
                        "expected at most %d, the length in use",
                        index, row.ids.size(), row.maxNew,
                        row.ids.size() + uint64_t(row.maxNew), maxSeq));
  return absl::OkStatus();
}

} // namespace

absl::Status validateRequest(const BatchRequest &request,
                             const ModelConfig &model, uint32_t maxBatch,
                             uint32_t maxSeq) {
  if (request.rows.empty() || request.rows.size() > maxBatch)
    return absl::InvalidArgumentError(
        absl::StrFormat("found %d rows, expected 1 to %d, the compiled batch",
                        request.rows.size(), maxBatch));
  if (!isTemperature(request.temperature))
    return absl::InvalidArgumentError(
        absl::StrFormat("found temperature %g, expected %s",
                        request.temperature, kTemperatureExpected));
  if (request.eosId < -1 || request.eosId >= int64_t(model.vocabSize))
    return absl::InvalidArgumentError(
        absl::StrFormat("found end id %d, expected -1 (none) to %d",
                        request.eosId, model.vocabSize - 1));
  if (request.wantTimes && request.onLogits)
    return absl::InvalidArgumentError(
        "found a request for the new ids' times and for logits, expected one "
        "of them");
  for (size_t i = 0; i != request.rows.size(); ++i)
    if (absl::Status status = validateRow(request.rows[i], i, model, maxSeq);
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::Status checkCount(const char *what, uint32_t found, uint32_t most,
                        const char *why) {
  if (found >= 1 && found <= most)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: found %d, expected 1 to %d%s", what, found, most, why));
}

absl::Status validateBench(const BenchRequest &request, uint32_t maxBatch,
                           uint32_t maxSeq) {
  // Every step's time is kept.
  constexpr uint32_t kMaxSteps = 100'000'000;
  absl::Status status =
      checkCount("batch", request.rows, maxBatch, ", the compiled batch");
  status.Update(
      checkCount("context", request.context, maxSeq, ", the length in use"));
  status.Update(checkCount("steps", request.steps, kMaxSteps, ""));
  return status;
}

} // namespace grok
