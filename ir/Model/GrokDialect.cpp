#include "ir/Model/GrokDialect.h"
#include "ir/Model/DoubleText.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace grok::ir;

#include "ir/Model/GrokDialect.cpp.inc"
#include "ir/Model/GrokEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Model/GrokAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/Model/GrokTypes.cpp.inc"

void GrokDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/Model/GrokAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/Model/GrokTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/Model/GrokOps.cpp.inc"
      >();
}

bool grok::ir::isRows(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 2 && tensor.isDynamicDim(0) &&
         !tensor.isDynamicDim(1) && tensor.getDimSize(1) > 0 &&
         tensor.getElementType().isF32() && !tensor.getEncoding();
}

int64_t grok::ir::widthOf(Type type) {
  return cast<RankedTensorType>(type).getDimSize(1);
}

double grok::ir::toDouble(Attribute attr) {
  return cast<FloatAttr>(attr).getValueAsDouble();
}

bool grok::ir::fitsFloat(Attribute attr) {
  double size = std::fabs(toDouble(attr));
  return size <= double(std::numeric_limits<float>::max()) &&
         (size == 0 || float(size) > 0);
}

LogicalResult RoutingType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  uint32_t perToken, uint32_t experts) {
  if (perToken >= 1 && perToken <= experts)
    return success();
  return emitError() << "routes each position to " << perToken << " of "
                     << experts
                     << " experts; expected at least one and at most all";
}

//===----------------------------------------------------------------------===//
// Constants: custom<Double>
//===----------------------------------------------------------------------===//

std::string grok::ir::doubleText(double value) {
  char digits[32];
  std::string text(digits, std::to_chars(digits, std::end(digits), value).ptr);
  if (text.find('.') == std::string::npos)
    text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

static ParseResult parseDouble(OpAsmParser &parser, FloatAttr &attr) {
  return parser.parseAttribute(attr, parser.getBuilder().getF64Type());
}

static void printDouble(OpAsmPrinter &printer, Operation *, FloatAttr attr) {
  if (attr.getValue().isFinite())
    printer << doubleText(toDouble(attr));
  else
    printer.printAttributeWithoutType(attr);
}

//===----------------------------------------------------------------------===//
// grok.layers COUNT (%stream = %init) : TYPE { ... }
//===----------------------------------------------------------------------===//

static ParseResult parseLayersBody(OpAsmParser &parser,
                                   OpAsmParser::UnresolvedOperand &init,
                                   Type &type, Region &body) {
  OpAsmParser::Argument stream;
  if (parser.parseLParen() || parser.parseArgument(stream) ||
      parser.parseEqual() || parser.parseOperand(init) ||
      parser.parseRParen() || parser.parseColonType(type))
    return failure();
  stream.type = type;
  return parser.parseRegion(body, stream);
}

static void printLayersBody(OpAsmPrinter &printer, LayersOp op, Value init,
                            Type type, Region &body) {
  printer << "(";
  printer.printRegionArgument(body.getArgument(0), {}, /*omitType=*/true);
  printer << " = " << init << ") : " << type << " ";
  printer.printRegion(body, /*printEntryBlockArgs=*/false);
}

void LayersOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (BlockArgument stream : region.getArguments())
    setName(stream, "h");
}

LogicalResult LayersOp::verifyRegions() {
  Type type = getInit().getType();
  if (getBody().getNumArguments() != 1)
    return emitOpError("region has ")
           << getBody().getNumArguments() << " arguments; expected one of type "
           << type;
  if (getStream().getType() != type)
    return emitOpError("region has an argument of type ")
           << getStream().getType() << "; expected " << type;
  auto yield = cast<YieldOp>(getBody().front().getTerminator());
  if (yield.getValue().getType() != getInit().getType())
    return yield.emitOpError("yields ") << yield.getValue().getType()
                                        << "; expected " << getInit().getType();
  return success();
}

#define GET_OP_CLASSES
#include "ir/Model/GrokOps.cpp.inc"
