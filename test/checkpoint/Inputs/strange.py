"""Checkpoints that have something wrong, each in a directory of its own."""
import json
import os
import sys

import faults
import generate
import model
import safetensors

FOLDER = sys.argv[1]


def write(name, change, config=True):
    options = generate.parse(["--layout", "safetensors", "-o", os.path.join(FOLDER, name)])
    made = model.Model(options)
    os.makedirs(options.output, exist_ok=True)
    if config:
        made.write_config(os.path.join(options.output, "config.json"))
    tensors = safetensors.contents(made, "bf16")
    change(tensors)
    safetensors.write_file(os.path.join(options.output, "model.safetensors"), tensors, "bf16")


def lose(tensors):
    for name in [n for n in tensors if ".experts.2." in n and n.startswith("model.layers.1.")]:
        del tensors[name]


def turn(tensors):
    shape, data = tensors["model.layers.0.self_attn.k_proj.weight"]
    tensors["model.layers.0.self_attn.k_proj.weight"] = (shape[0] // 2, shape[1] * 2), data


def add(tensors):
    for i in range(12):
        tensors[f"model.layers.{i}.self_attn.q_norm.weight"] = (4,), b"\0" * 8


def rename(tensors):
    for name in list(tensors):
        tensors["vision." + name] = tensors.pop(name)


def deface(tensors):
    for name in "\x1b]0;evil\x07 \x9b2J", "two\nlines", "\u202eturned":
        tensors[name] = (4,), b"\0" * 8


def deface_all(tensors):
    rename(tensors)
    tensors["a\nb\u202e"] = (4,), b"\0" * 8


write("whole", lambda tensors: None)
write("bare", lambda tensors: None, config=False)
write("lost", lose)
write("lost-bare", lose, config=False)
write("turned", turn)
write("added", add)
write("unknown", rename)
write("hostile", deface)
write("unknown-hostile", deface_all)
write("nothing", dict.clear)
faults.generate(os.path.join(FOLDER, "twice"), "--layout", "torch-sharded")
index = os.path.join(FOLDER, "twice", "pytorch_model.bin.index.json")
with open(index) as file:
    content = json.load(file)
content["weight_map"]["model.norm.weight"] = "pytorch_model-00001-of-00003.bin"
with open(index, "w") as file:
    json.dump(content, file)


def name_only(name, gate, query, layers, experts, shape=(0, 0)):
    """Tensors without elements, whose names alone are many, or say large numbers."""
    os.makedirs(os.path.join(FOLDER, name))
    tensors = {gate.format(expert): (shape, b"") for expert in experts}
    tensors.update({query.format(layer): ((0, 0), b"") for layer in layers})
    safetensors.write_file(os.path.join(FOLDER, name, "model.safetensors"), tensors, "bf16")


GATE, QUERY = "model.layers.0.block_sparse_moe.experts.{}.w1.weight", "model.layers.{}.self_attn.q_proj.weight"
name_only("far", GATE, QUERY, range(0, 60000, 1000), range(0, 60000, 1000))
name_only("many", GATE, QUERY, range(1500), range(1500))
name_only("stray", GATE, QUERY, [0, 1, 1026, 2**32 - 1, 2**32], [0])
name_only("stacked", "blk.{}.ffn_gate_exps.weight", "blk.{}.attn_q.weight", range(0, 1000000, 1000), [0],
          (65535, 0, 0))
