// A measurement beside what the compiler predicted for it.
#pragma once

#include <optional>
#include <string>

#include "runtime/Executor.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Json.h"
#include "runtime/bundle/Prediction.h"
#include "tools/grokrun/Distribution.h"

namespace grok::grokrun {

/// What the manifest has for this on the executor's device, and why there is
/// nothing.
struct Foretold {
  std::optional<Prediction> prediction;
  std::string none;
};
Foretold foretold(const Bundle &bundle, const Executor &executor,
                  const PredictionKey &key);

/// The line `predicted` of a bench, for the device `target`.
std::string predictedText(const Foretold &foretold, const std::string &target,
                          const Distribution &measured);

/// Each case with its terms, and the measurement's ratios to them.
nlohmann::ordered_json predictedJson(const Prediction &predicted,
                                     const Distribution &measured);

} // namespace grok::grokrun
