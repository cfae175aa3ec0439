// How the dialect writes a constant. Plain C++.
#pragma once

#include <string>

namespace grok::ir {

/// The shortest digits that read back to the same finite double, with a decimal
/// point, as MLIR's syntax needs one: "16.0", "1.0e-05", "208533496.0".
std::string doubleText(double value);

} // namespace grok::ir
