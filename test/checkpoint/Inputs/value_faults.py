"""Shards of float32 in which one element is what the element type of the bundle cannot hold.

value_faults.py GROKC DIR DTYPE
"""
import glob
import json
import os
import struct
import subprocess
import sys

import faults

TENSOR, ELEMENT = "model.layers.1.self_attn.k_proj.weight", 37


def with_value(value):
    def fill(place):
        faults.generate(place, "--layout", "safetensors-sharded", "--store", "f32", "--spelling", "self_attn")
        for path in glob.glob(os.path.join(place, "*.safetensors")):
            with open(path, "r+b") as file:
                length, = struct.unpack("<Q", file.read(8))
                tensor = json.loads(file.read(length)).get(TENSOR)
                if tensor:
                    file.seek(8 + length + tensor["data_offsets"][0] + 4 * ELEMENT)
                    file.write(struct.pack("<f", value))
                    return
        sys.exit(f"{TENSOR} is in no file")
    return fill


VALUES = {"large": 70000.0, "largest": struct.unpack("<f", b"\xff\xff\x7f\x7f")[0], "infinite": float("inf"),
          "nan": float("nan")}
CANNOT_HOLD = {"bf16": ["largest"], "f16": ["large", "largest"], "int8": ["infinite", "nan"], "fp8": ["infinite", "nan"]}
STAY = {"bf16": ["infinite", "nan"], "f16": ["infinite", "nan"], "int8": [], "fp8": []}


def must_be_packed(grokc, folder, dtype, name):
    """Without a word: nothing judges values that the element type has."""
    place = os.path.join(folder, name)
    os.makedirs(place)
    with_value(VALUES[name])(place)
    done = subprocess.run([grokc, "compile", "--config", place, "--target", "cpu", "--dtype", dtype, "-o",
                           os.path.join(place, "out.grok")], capture_output=True, text=True)
    print(f"{name}: status {done.returncode}, said '{done.stderr}'")


if __name__ == "__main__":
    grokc, folder, dtype = sys.argv[1:]
    faults.run(grokc, folder, {name: with_value(VALUES[name]) for name in CANNOT_HOLD[dtype]}, options=("--dtype", dtype))
    for stays in STAY[dtype]:
        must_be_packed(grokc, os.path.join(folder, "stay-" + dtype), dtype, stays)
