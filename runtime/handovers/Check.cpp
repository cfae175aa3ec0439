#include "runtime/handovers/Check.h"

#include "absl/strings/str_cat.h"
#include "runtime/handovers/DecodeProgram.h"
#include "runtime/handovers/Network.h"
#include "runtime/handovers/Order.h"
#include "runtime/handovers/Simulator.h"

namespace grok::handovers {
namespace {

absl::Status playAll(const Network &network, const CheckOptions &options,
                     uint64_t seed, CheckReport &report) {
  if (absl::Status status = proveOrder(network); !status.ok())
    return status;
  auto play = [&](const Schedule &schedule) {
    ++report.orders;
    return simulate(network, schedule);
  };
  for (const Schedule &schedule :
       extremeSchedules(network.slots(), options.slotsApart))
    if (absl::Status status = play(schedule); !status.ok())
      return status;
  for (uint32_t i = 0; i != options.randomOrders; ++i)
    if (absl::Status status = play(randomSchedule(network.slots(), seed + i));
        !status.ok())
      return status;
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<CheckReport> checkHandOvers(const ModelConfig &model,
                                           const PlanTables &plan,
                                           std::string_view file,
                                           const CheckOptions &options) {
  CheckReport report;
  uint64_t seed = options.seed << 32;
  for (const Scenario &scenario : scenarios(model, plan, options.seed)) {
    absl::StatusOr<Network> network =
        link(decodeProcesses(model, plan, scenario), plan, file);
    absl::Status status = network.ok()
                              ? playAll(*network, options, seed, report)
                              : network.status();
    if (!status.ok())
      return absl::Status(status.code(), absl::StrCat(status.message(), " (",
                                                      scenario.name, ")"));
    ++report.scenarios;
    seed += options.randomOrders;
    for (const std::vector<LinkedOp> &process : network->linked)
      for (const LinkedOp &op : process)
        report.handOvers += op.after.size();
  }
  return report;
}

} // namespace grok::handovers
