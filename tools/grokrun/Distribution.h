// How times are distributed.
#pragma once

#include <vector>

namespace grok::grokrun {

/// A quantile is the least time that so large a share of the times kept.
struct Distribution {
  double p50 = 0, p90 = 0, p99 = 0, p999 = 0, p9999 = 0, most = 0;
  double mean = 0, deviation = 0; // standard deviation of the times given
};

/// Of at least one time, in any order.
Distribution distributionOf(std::vector<double> times);

} // namespace grok::grokrun
