#include "runtime/service/Batch.h"

#include <algorithm>

#include "runtime/bundle/Worker.h"

namespace grok::service {
namespace {

/// Ids that a row generates in a turn: what comes between two turns (a launch,
/// copies of a few ids) is a percent of them on a GPU.
constexpr uint32_t kTurnIds = 16;

bool contains(const std::vector<int32_t> &ids, int32_t id) {
  return std::ranges::find(ids, id) != ids.end();
}

/// Rows that are computed in one run of the executor sample alike.
bool sampleAlike(const Request &a, const Request &b) {
  return a.temperature == b.temperature &&
         (a.temperature == 0 || a.seed == b.seed);
}

} // namespace

void Batch::add(Accepted accepted) {
  auto row = std::ranges::find_if(
      rows_, [](const std::optional<Row> &r) { return !r; });
  row->emplace();
  (*row)->ids = accepted.request.ids;
  (*row)->answer.times.started = secondsSince(accepted.at);
  (*row)->accepted = std::move(accepted);
  ++used_;
}

Ended Batch::finish(size_t index, absl::Status status) {
  Row &row = *rows_[index];
  row.answer.status = std::move(status);
  row.answer.times.answered = secondsSince(row.accepted.at);
  Ended ended{std::move(row.accepted), std::move(row.answer)};
  rows_[index].reset();
  --used_;
  return ended;
}

void Batch::end(
    const std::function<absl::Status(const Accepted &, size_t)> &reason,
    std::vector<Ended> &ended) {
  for (size_t i = 0; i != rows_.size(); ++i)
    if (rows_[i])
      if (absl::Status status =
              reason(rows_[i]->accepted, rows_[i]->answer.ids.size());
          !status.ok())
        ended.push_back(finish(i, std::move(status)));
}

/// Where somebody watches, a turn has one id. Prompts advance by what the
/// executor computes in the time of that, so that they hold up nobody.
Batch::Share Batch::share() const {
  bool watched = std::ranges::any_of(rows_, [](const std::optional<Row> &row) {
    return row && row->accepted.request.onIds;
  });
  uint32_t generated = watched ? 1 : kTurnIds;
  return {std::max(generated, executor_.knownIdsPerStep()), generated};
}

/// The rows that sample like the first one that isn't done.
std::vector<size_t> Batch::nextGroup(const std::vector<bool> &done) const {
  std::vector<size_t> group;
  for (size_t i = 0; i != rows_.size(); ++i)
    if (rows_[i] && !done[i] &&
        (group.empty() || sampleAlike(rows_[group[0]]->accepted.request,
                                      rows_[i]->accepted.request)))
      group.push_back(i);
  return group;
}

void Batch::turn(std::vector<Ended> &ended) {
  const Share share = this->share();
  std::vector<bool> done(rows_.size());
  ended.reserve(ended.size() + rows_.size()); // none may be lost
  for (std::vector<size_t> group = nextGroup(done); !group.empty();
       group = nextGroup(done)) {
    for (size_t i : group)
      done[i] = true;
    if (absl::Status status =
            callCaught([&] { return run(group, share, ended); });
        !status.ok()) {
      end([&](const Accepted &, size_t) { return status; }, ended);
      return;
    }
  }
}

RowRequest Batch::rowRequest(const Row &row, const Share &share) const {
  const uint32_t prompt = uint32_t(row.accepted.request.ids.size());
  RowRequest out;
  out.start = row.computed;
  out.decodeFrom = prompt;
  if (row.ids.size() - row.computed > share.known) {
    out.ids.assign(row.ids.begin(),
                   row.ids.begin() + row.computed + share.known);
    return out;
  }
  out.ids = row.ids;
  out.maxNew = std::min(share.generated, row.accepted.request.maxNew -
                                             uint32_t(row.answer.ids.size()));
  return out;
}

absl::Status Batch::run(const std::vector<size_t> &group, const Share &share,
                        std::vector<Ended> &ended) {
  const Request &first = rows_[group[0]]->accepted.request;
  BatchRequest batch;
  batch.rows.resize(group.back() + 1);
  for (RowRequest &row : batch.rows)
    row.idle = true;
  batch.temperature = first.temperature;
  batch.seed = first.seed;
  // The executor knows one end id. What a row generates past another one is
  // dropped.
  if (!first.stopIds.empty() && std::ranges::all_of(group, [&](size_t i) {
        return contains(rows_[i]->accepted.request.stopIds, first.stopIds[0]);
      }))
    batch.eosId = first.stopIds[0];
  for (size_t i : group)
    batch.rows[i] = rowRequest(*rows_[i], share);
  absl::StatusOr<BatchResult> result = executor_.run(batch);
  if (!result.ok())
    return result.status();
  for (size_t i : group) {
    Row &row = *rows_[i];
    const bool promptDone = batch.rows[i].ids.size() == row.ids.size();
    row.computed = uint32_t(batch.rows[i].ids.size());
    if (promptDone && append(row, result->newIds[i]))
      ended.push_back(finish(i, absl::OkStatus()));
  }
  return absl::OkStatus();
}

/// True if the request is complete.
bool Batch::append(Row &row, std::span<const int32_t> newIds) {
  const Request &request = row.accepted.request;
  auto stop = std::ranges::find_if(
      newIds, [&](int32_t id) { return contains(request.stopIds, id); });
  row.answer.stopped = stop != newIds.end();
  newIds = newIds.first(size_t(stop - newIds.begin()) + row.answer.stopped);
  if (!newIds.empty() && row.answer.ids.empty())
    row.answer.times.firstId = secondsSince(row.accepted.at);
  row.ids.insert(row.ids.end(), newIds.begin(), newIds.end());
  row.answer.ids.insert(row.answer.ids.end(), newIds.begin(), newIds.end());
  row.computed = uint32_t(row.ids.size()) - 1; // the last id is not computed
  if (request.onIds && !newIds.empty())
    request.onIds(newIds);
  return row.answer.stopped || row.answer.ids.size() == request.maxNew;
}

} // namespace grok::service
