"""GGUF v3 for the architecture grok: one file, or two parts."""
import array
import os
import struct

import model as models

TYPES = {"f32": 0, "f16": 1, "q8_0": 8, "bf16": 30}
ALIGNMENT = 32
U32, F32, STRING, ARRAY = 4, 6, 8, 9

GLOBAL = {"embedding": "token_embd", "final_norm": "output_norm", "head": "output"}
LAYER = {"pre_attn_norm": "attn_norm", "post_attn_norm": "attn_output_norm", "pre_moe_norm": "ffn_norm",
         "post_moe_norm": "post_ffw_norm", "query": "attn_q", "key": "attn_k", "value": "attn_v",
         "attn_out": "attn_output", "router": "ffn_gate_inp", "dense_gate": "ffn_gate", "dense_up": "ffn_up",
         "dense_down": "ffn_down"}


def text(value):
    value = value.encode()
    return struct.pack("<Q", len(value)) + value


def pair(key, value):
    if isinstance(value, str):
        return text(key) + struct.pack("<I", STRING) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", F32, value)
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(text(v) for v in value)
    return text(key) + struct.pack("<II", U32, value)


def coded(tensor, store):
    """(type, bytes): vectors and routers are float32, as converters keep them."""
    if len(tensor.shape) == 1 or tensor.name.endswith("router"):
        return TYPES["f32"], tensor.bytes("f32")
    if store != "q8_0":
        return TYPES[store], tensor.bytes(store)
    out = bytearray()
    for block, scale in enumerate(tensor.scales):
        first = block * models.Q8_BLOCK
        out += struct.pack("<e", scale) + array.array("b", tensor.ints[first:first + models.Q8_BLOCK]).tobytes()
    return TYPES["q8_0"], bytes(out)


def contents(model, options):
    """Name to (dims, type, bytes), dims in GGUF's order."""
    out = {}
    for name, tensor in model.tensors.items():
        if name in GLOBAL:
            full = GLOBAL[name]
        else:
            layer, *expert, part = name.split(".")
            if expert:
                continue
            full = f"blk.{layer}.{LAYER[part]}"
            if options.old_names:
                full = full.replace("post_ffw_norm", "layer_output_norm")
        out[full + ".weight"] = (tensor.shape[::-1], *coded(tensor, options.store))
    for layer in range(model.layers):
        for part in ("gate", "up", "down"):
            parts = [model.tensors[f"{layer}.{e}.{part}"] for e in range(models.E)]
            made = [coded(t, options.store) for t in parts]
            out[f"blk.{layer}.ffn_{part}_exps.weight"] = (parts[0].shape[::-1] + (models.E,), made[0][0],
                                                          b"".join(data for _, data in made))
    return out


def metadata(model):
    pairs = {
        "general.architecture": "grok", "general.name": "a small model", "general.alignment": ALIGNMENT,
        "grok.embedding_length": models.D, "grok.block_count": model.layers, "grok.context_length": 1024,
        "grok.attention.head_count": models.H, "grok.attention.head_count_kv": models.K,
        "grok.attention.key_length": model.head_dim, "grok.attention.value_length": model.head_dim,
        "grok.attention.layer_norm_rms_epsilon": 1e-5, "grok.rope.freq_base": 10000.0,
        "grok.expert_count": models.E, "grok.expert_used_count": 2, "grok.expert_feed_forward_length": model.expert_width,
        "grok.feed_forward_length": models.FD if model.dense else model.expert_width, "grok.embedding_scale": 5.5,
        "grok.logit_scale": 0.625, "grok.attention.output_scale": 0.25, "grok.attn_logit_softcapping": 30.0,
        "grok.router_logit_softcapping": 30.0, "tokenizer.ggml.tokens": [f"t{i}" for i in range(model.options.vocabulary)],
    }
    if model.dense:
        pairs.update({"grok.final_logit_softcapping": 50.0, "grok.attention.temperature_length": 4})
    return pairs


def file_bytes(pairs, tensors):
    out = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)))
    for key, value in pairs.items():
        out += pair(key, value)
    at = 0
    for name, (dims, kind, data) in tensors.items():
        out += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, at)
        at += len(data) + -len(data) % ALIGNMENT
    for _, _, data in tensors.values():
        out += b"\0" * (-len(out) % ALIGNMENT) + data
    return bytes(out)


def write_file(path, pairs, tensors):
    with open(path, "wb") as file:
        file.write(file_bytes(pairs, tensors))


def write(model, options):
    write_file(os.path.join(options.output, "model.gguf"), metadata(model), contents(model, options))


def write_split(model, options):
    tensors = contents(model, options)
    names = list(tensors)
    for number in range(2):
        pairs = {**(metadata(model) if number == 0 else {}), "split.no": number, "split.count": 2,
                 "split.tensors.count": len(names)}
        write_file(os.path.join(options.output, f"model-{number + 1:05}-of-00002.gguf"), pairs,
                   {name: tensors[name] for name in names[number::2]})
