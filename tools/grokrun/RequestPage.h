// The report of a bench run of requests as a page with plots.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/grokrun/RequestReport.h"

namespace grok::grokrun {

/// HTML that needs nothing but itself. Errors as those of report::addBundle.
absl::StatusOr<std::string> requestPage(const RequestReport &report,
                                        const Bundle &bundle);

} // namespace grok::grokrun
