// How a plan.prediction says that it looked at every set of experts.
#pragma once

namespace grok::plan {

/// A unit attribute.
inline constexpr const char *kExhaustive = "exhaustive";

} // namespace grok::plan
