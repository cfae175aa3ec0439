// A measurement beside what the compiler predicted for it.
#pragma once

#include <string>

#include "runtime/bundle/Json.h"
#include "runtime/bundle/Prediction.h"
#include "tools/grokrun/Distribution.h"

namespace grok::grokrun {

/// The line `predicted` of a bench, for the device `target`.
std::string predictedText(const Prediction &predicted,
                          const std::string &target,
                          const Distribution &measured);

/// Each case with its terms, and the measurement's ratios to them.
nlohmann::ordered_json predictedJson(const Prediction &predicted,
                                     const Distribution &measured);

} // namespace grok::grokrun
