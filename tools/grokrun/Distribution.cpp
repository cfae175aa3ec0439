#include "tools/grokrun/Distribution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace grok::grokrun {

Distribution distributionOf(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const double count = double(times.size());
  auto quantile = [&](double share) {
    return times[size_t(std::max(std::ceil(share * count), 1.0)) - 1];
  };
  Distribution d{quantile(0.5),   quantile(0.9),    quantile(0.99),
                 quantile(0.999), quantile(0.9999), times.back()};
  d.mean = std::accumulate(times.begin(), times.end(), 0.0) / count;
  double squares = 0;
  for (double time : times)
    squares += (time - d.mean) * (time - d.mean);
  d.deviation = std::sqrt(squares / count);
  return d;
}

} // namespace grok::grokrun
