//===-- The `plan` dialect: who does what, when and from where, on one device -*- tablegen -*-===//
#ifndef GROK_IR_PLAN_PLANDIALECT_TD
#define GROK_IR_PLAN_PLANDIALECT_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def PlanDialect : Dialect {
  let name = "plan";
  let cppNamespace = "::grok::plan";
  let summary = "A fixed plan of one device: slots, phases, weight streams, banks and memory";
  let description = [{
    A plan is the compiler's answer to everything that could otherwise be decided at run time. One `plan.device` stands
    for one GPU (or CPU); the passes fill it in from top to bottom, and its verifier checks after every pass what is
    there so far. Weights never appear here, only where they lie.
  }];
}

class PlanEnum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::grok::plan";
}

// The values are those of grok::Phase, MatrixKind, SmPolicy, BankPolicy, Activations, DType and Quantization.
def PhaseKind : PlanEnum<"PhaseKind", "phase of a decode step", [
  I32EnumAttrCase<"Qkv", 0, "qkv">, I32EnumAttrCase<"Attention", 1, "attention">, I32EnumAttrCase<"Merge", 2, "merge">,
  I32EnumAttrCase<"AttnOut", 3, "attn_out">, I32EnumAttrCase<"Route", 4, "route">, I32EnumAttrCase<"GateUp", 5, "gate_up">,
  I32EnumAttrCase<"Down", 6, "down">, I32EnumAttrCase<"Head", 7, "head">]>;

def StreamKind : PlanEnum<"StreamKind", "streamed matrix", [
  I32EnumAttrCase<"Qkv", 0, "qkv">, I32EnumAttrCase<"AttnOut", 1, "attn_out">, I32EnumAttrCase<"GateUp", 2, "gate_up">,
  I32EnumAttrCase<"DenseGateUp", 3, "dense_gate_up">, I32EnumAttrCase<"Down", 4, "down">,
  I32EnumAttrCase<"DenseDown", 5, "dense_down">, I32EnumAttrCase<"Head", 6, "head">]>;

def SlotPolicy : PlanEnum<"SlotPolicy", "which slots compute an expert", [
  I32EnumAttrCase<"All", 0, "all">, I32EnumAttrCase<"Group", 1, "group">]>;

def PlacePolicy : PlanEnum<"PlacePolicy", "which bank an expert's extents lie in", [
  I32EnumAttrCase<"Striped", 0, "striped">, I32EnumAttrCase<"Expert", 1, "expert">]>;

def OperandKind : PlanEnum<"OperandKind", "how an activation operand is stored", [
  I32EnumAttrCase<"Single", 0, "single">, I32EnumAttrCase<"Split", 1, "split">]>;

def ElementKind : PlanEnum<"ElementKind", "16-bit type of operands and weights", [
  I32EnumAttrCase<"F16", 0, "f16">, I32EnumAttrCase<"BF16", 1, "bf16">]>;

def CodeKind : PlanEnum<"CodeKind", "how streamed weights of 8 bits are stored", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Int8", 1, "int8">, I32EnumAttrCase<"Fp8", 2, "fp8">]>;

def RouterKind : PlanEnum<"RouterKind", "how experts are chosen", [
  I32EnumAttrCase<"Hash", 0, "hash">, I32EnumAttrCase<"Learned", 1, "learned">]>;

def EdgeScope : PlanEnum<"EdgeScope", "when the consumer of a hand-over runs", [
  I32EnumAttrCase<"SameLayer", 0, "same_layer">, I32EnumAttrCase<"NextLayer", 1, "next_layer">,
  I32EnumAttrCase<"NextStep", 2, "next_step">]>;

def EdgeSync : PlanEnum<"EdgeSync", "what orders the consumer after the producer", [
  I32EnumAttrCase<"Epoch", 0, "epoch">, I32EnumAttrCase<"StepFence", 1, "step_fence">]>;

def PredictionScope : PlanEnum<"PredictionScope", "what a prediction covers", [
  I32EnumAttrCase<"Step", 0, "step">, I32EnumAttrCase<"Request", 1, "request">]>;

#endif // GROK_IR_PLAN_PLANDIALECT_TD
