// The dialect `plan`: who does what, when and from where, on one device.
#pragma once

#include <cstdint>
#include <string>

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"

#include "ir/Plan/PlanDialect.h.inc"
#include "ir/Plan/PlanEnums.h.inc"

#define GET_OP_CLASSES
#include "ir/Plan/PlanOps.h.inc"
