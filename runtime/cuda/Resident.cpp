// A decode kernel that stays on the device between turns. The host writes the
// next turn into memory that both see, the kernel its results; no call of the
// driver stands between a request and its ids. While it stays it has the whole
// device, and whatever waits for the device waits for it.
#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_format.h"
#include "runtime/cuda/CudaExecutor.h"

#define RETURN_IF_ERROR(expression)                                            \
  if (absl::Status status_ = (expression); !status_.ok())                      \
  return status_

namespace grok::cuda {
namespace {

/// How often the driver is asked whether a kernel that does not report has
/// ended.
constexpr std::chrono::milliseconds kQueryInterval(1);

} // namespace

absl::Status CudaExecutor::stayResident() {
  if (!takesTurns_)
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: found kernels that cannot stay, from before bundle format %d; "
        "retarget it to its target",
        path_, kTurnsFormatVersion));
  resident_ = true;
  return absl::OkStatus();
}

absl::Status CudaExecutor::begin() {
  RETURN_IF_ERROR(context_.makeCurrent());
  return leave();
}

/// Whether the request is none for the kernel that stays: there is no such
/// kernel, it has another number of rows, another kernel has a part in the
/// request, or epochs would come again.
bool CudaExecutor::needsLaunch(const BatchRequest &request,
                               const std::vector<RowProgress> &rows) const {
  const bool prefills =
      prefill_ && std::ranges::any_of(request.rows, [](const RowRequest &row) {
        return row.start < std::min(uint32_t(row.ids.size()), row.decodeFrom);
      });
  return rows.size() != stayingRows_ || request.onLogits || prefills ||
         epoch_ + epochsOf(turnOf(request, rows)) >= kEpochLimit;
}

/// The number comes last: with it everything before is there.
void CudaExecutor::send(abi::Turn turn) {
  auto &mailbox = *mailbox_.host<abi::Turn>();
  const uint32_t number = std::exchange(turn.number, mailbox.number);
  mailbox = turn;
  std::atomic_ref(mailbox.number).store(number);
}

absl::Status CudaExecutor::post(const BatchRequest &request, abi::Turn turn) {
  for (uint32_t b = 0; b < turn.rows; ++b)
    std::copy(request.rows[b].ids.begin() + turn.start[b],
              request.rows[b].ids.end(), hostIds(b) + turn.start[b]);
  turn.number = ++turn_;
  epoch_ += uint32_t(epochsOf(turn));
  send(turn);
  return awaitTurn(turn);
}

/// Ok once the turn is done or the kernel has failed or ended.
absl::Status CudaExecutor::awaitReport(uint32_t number) {
  Clock::time_point asked = Clock::now();
  while (std::atomic_ref(status().code).load() == abi::kOk &&
         std::atomic_ref(status().done).load() != number) {
    std::this_thread::yield();
    if (Clock::now() - asked < kQueryInterval)
      continue;
    asked = Clock::now();
    if (Result result = api_.streamQuery(nullptr); result != kNotReady)
      return api_.check(result, "streamQuery");
  }
  return absl::OkStatus();
}

absl::Status CudaExecutor::awaitTurn(const abi::Turn &turn) {
  absl::Status ok = awaitReport(turn.number);
  turnEnd_ = Clock::now();
  // What a kernel says of its failure is whole when it has ended.
  if (!ok.ok() || status().code != abi::kOk || status().done != turn.number)
    ok.Update(leave());
  return ok.ok() ? checkTurn(turn) : ok;
}

/// Ends the kernel that stays.
absl::Status CudaExecutor::leave() {
  if (!stayingRows_)
    return absl::OkStatus();
  stayingRows_ = 0;
  abi::Turn last{}; // without rows
  last.number = ++turn_;
  send(last);
  GROK_CUDA_RETURN_IF_ERROR(api_, contextSynchronize);
  return absl::OkStatus();
}

} // namespace grok::cuda
