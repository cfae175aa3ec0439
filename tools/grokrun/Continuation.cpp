#include "tools/grokrun/Continuation.h"

#include <algorithm>

namespace grok::grokrun {
namespace {

/// Ids of one run of the executor, which stops after one id only: a run that
/// overlooks another one must not go on for long.
constexpr uint32_t kSeveralStops = 16;

uint32_t idsOfRun(const ContinueOptions &options) {
  if (options.onIds)
    return 1;
  return options.stopIds.size() > 1 ? kSeveralStops : options.count;
}

} // namespace

absl::StatusOr<Continuation> continueIds(Executor &executor,
                                         const ModelConfig &model,
                                         const std::vector<int32_t> &prompt,
                                         const ContinueOptions &options) {
  BatchRequest request;
  // What was generated is computed alike, wherever a run ends.
  request.rows = {{prompt, 0, options.count, uint32_t(prompt.size())}};
  request.eosId = options.stopIds.empty() ? -1 : options.stopIds[0];
  request.temperature = options.temperature;
  request.seed = options.seed;
  // The whole must fit before a part is begun.
  if (absl::Status status = validateRequest(request, model, executor.maxBatch(),
                                            executor.maxSeq());
      !status.ok())
    return status;
  Continuation out;
  RowRequest &row = request.rows[0];
  do {
    row.maxNew =
        std::min(idsOfRun(options), options.count - uint32_t(out.ids.size()));
    absl::StatusOr<BatchResult> result = executor.run(request);
    if (!result.ok())
      return result.status();
    out.seconds += result->seconds;
    for (int32_t id : result->newIds[0]) {
      out.ids.push_back(id);
      row.ids.push_back(id);
      out.stopped =
          std::ranges::find(options.stopIds, id) != options.stopIds.end();
      if (out.stopped)
        break;
    }
    row.start = uint32_t(row.ids.size()) - 1; // the last id is not computed
    if (options.onIds)
      if (absl::Status status = options.onIds(out.ids); !status.ok())
        return status;
  } while (!out.stopped && out.ids.size() < options.count);
  return out;
}

} // namespace grok::grokrun
