// What a prediction promises of whole requests. Internal to this room.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "runtime/bundle/Prediction.h"

namespace grok {

/// The predicted request whose worst case is the longest; none if there is no
/// request among the predictions.
std::optional<Prediction> worstRequest(const std::string &predictionJson);

/// FailedPrecondition if its worst case takes more than `seconds`: by how much,
/// which term is the largest, and what would make it smaller. Also if nothing
/// is predicted.
absl::Status checkDeadline(const std::string &predictionJson, double seconds);

} // namespace grok
