// The dialect `grok`: what a model computes, with no machine in it.
#pragma once

#include <cstdint>

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace grok::ir {

/// A float32 tensor of one dynamic dimension (positions) and one static,
/// positive width.
bool isRows(mlir::Type type);
/// The width of a type that isRows.
int64_t widthOf(mlir::Type type);
inline int64_t widthOf(mlir::Value value) { return widthOf(value.getType()); }

/// Of a FloatAttr of type f64.
double toDouble(mlir::Attribute attr);
/// Its value rounds to a finite float32, and to zero only if it is zero.
bool fitsFloat(mlir::Attribute attr);

} // namespace grok::ir

#include "ir/Model/GrokDialect.h.inc"
#include "ir/Model/GrokEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Model/GrokAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Model/GrokTypes.h.inc"
#define GET_OP_CLASSES
#include "ir/Model/GrokOps.h.inc"
