// The parts of a report that need no run: what the compiler predicted, which
// slot reads what, in which banks, and what lies where in memory.
#pragma once

#include "runtime/bundle/Bundle.h"
#include "tools/report/Page.h"

namespace grok::report {

/// Adds them all. Errors as those of cli::readRecords.
absl::Status addBundle(Page &page, const Bundle &bundle);

/// A page of them alone.
absl::StatusOr<std::string> bundlePage(const Bundle &bundle);

} // namespace grok::report
