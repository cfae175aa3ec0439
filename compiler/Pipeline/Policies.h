// The choice of policies that the request leaves to the compiler. Internal to
// this room.
#pragma once

#include "compiler/Pipeline/Lowering.h"

namespace grok {

/// lower, with the policies of which the worst predicted request is the
/// shortest where the request leaves them open (ties: the first, all and
/// striped). They are set in request.options, and a remark says what the others
/// would have taken. Only what the chosen ones have to report is reported.
absl::StatusOr<Lowered> lowerWithPolicies(CompileRequest &request,
                                          const CompileHooks &hooks);

} // namespace grok
