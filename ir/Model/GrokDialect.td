// The dialect `grok`: its types, enumerations and constraints.
#ifndef GROK_IR_MODEL_GROKDIALECT_TD
#define GROK_IR_MODEL_GROKDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Grok_Dialect : Dialect {
  let name = "grok";
  let cppNamespace = "::grok::ir";
  let summary = "What a Grok-family model computes, with no machine in it";
  let description = [{
    One `grok.model` holds a whole model as straight-line operations on tensors of
    positions times width. The layers are one region that is repeated. The token
    ids and their absolute positions are the model's implicit input: `grok.embed`
    reads the ids, `grok.hash_route` both, `grok.rope` and `grok.attention` the
    positions. Weights never appear; an operation names the weights it uses by
    its kind and its place.

    Every field of a model's configuration is an attribute here, and the verifier
    of `grok.model` accepts exactly the models that the compiler lowers. So a
    configuration key that is recognised but not lowered cannot exist.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Grok_Rows : Type<CPred<"::grok::ir::isRows($_self)">,
                     "tensor of f32 with one dynamic dimension (positions) and a static width",
                     "::mlir::RankedTensorType">;

def Grok_Routing : TypeDef<Grok_Dialect, "Routing"> {
  let mnemonic = "routing";
  let summary = "For each position, the experts chosen and their weights";
  let description = [{
    `!grok.routing<2 of 8>`: each position goes to two of eight experts. The sum
    over the chosen experts runs in ascending expert index.
  }];
  let parameters = (ins "uint32_t":$perToken, "uint32_t":$experts);
  let assemblyFormat = "`<` $perToken `of` $experts `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class Grok_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::grok::ir";
  let genSpecializedAttr = 0;
}
class Grok_EnumAttr<EnumAttrInfo info, string mnemonic> : EnumAttr<Grok_Dialect, info, mnemonic>;

def Grok_GeluKind : Grok_Enum<"GeluKind", "how a GELU is computed", [
  I32EnumAttrCase<"Tanh", 0, "tanh">, I32EnumAttrCase<"Erf", 1, "erf">]>;
def Grok_GeluAttr : Grok_EnumAttr<Grok_GeluKind, "gelu">;

def Grok_StorageType : Grok_Enum<"StorageType", "16-bit type of the weights in a checkpoint", [
  I32EnumAttrCase<"F16", 0, "f16">, I32EnumAttrCase<"BF16", 1, "bf16">]>;
def Grok_StorageTypeAttr : Grok_EnumAttr<Grok_StorageType, "storage">;

def Grok_NormSite : Grok_Enum<"NormSite", "which of a model's norms", [
  I32EnumAttrCase<"PreAttn", 0, "pre_attn">, I32EnumAttrCase<"PostAttn", 1, "post_attn">,
  I32EnumAttrCase<"PreMoe", 2, "pre_moe">, I32EnumAttrCase<"PostMoe", 3, "post_moe">,
  I32EnumAttrCase<"Final", 4, "final">]>;
def Grok_NormSiteAttr : Grok_EnumAttr<Grok_NormSite, "norm">;

def Grok_LinearSite : Grok_Enum<"LinearSite", "which of a layer's single matrices", [
  I32EnumAttrCase<"AttnOut", 0, "attn_out">]>;
def Grok_LinearSiteAttr : Grok_EnumAttr<Grok_LinearSite, "weights">;

//===----------------------------------------------------------------------===//
// Attribute constraints
//===----------------------------------------------------------------------===//

def Grok_Count : ConfinedAttr<I32Attr, [IntPositive]>;
/// A 32-bit unsigned constant of the hash, held in 64 bits so that it prints as it is written in a config.
def Grok_Word : ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<4294967295>]>;
def Grok_TokenId : ConfinedAttr<I64Attr, [IntMinValue<0>]>;

/// Constants are double and used as float32, so they must have a float32 value, and not become zero.
class Grok_Float<string test, string what>
    : ConfinedAttr<F64Attr, [AttrConstraint<CPred<"::grok::ir::fitsFloat($_self) && ::grok::ir::toDouble($_self) " # test>,
                                            "whose value is a finite float32 " # what>]>;
def Grok_NonZero : Grok_Float<"!= 0.0", "other than zero">;
def Grok_Positive : Grok_Float<"> 0.0", "above zero">;
def Grok_AboveOne : Grok_Float<"> 1.0", "above one">;

#endif // GROK_IR_MODEL_GROKDIALECT_TD
