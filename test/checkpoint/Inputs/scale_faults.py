"""Checkpoints of 8-bit codes with one scale that is no finite number, or makes none of the codes."""
import os
import struct
import sys

import faults  # puts the generator on the path
import ckpt0
import generate
import gguf
import model
import numbers16


def jax(scale, *options):
    """ckpt-0 whose first layer's queries have a bad scale of row 1."""
    def fill(place):
        options_of = generate.parse(["--layout", "ckpt-0", "--grid", "int8", "-o", place, *options])
        made = model.Model(options_of)
        made.write_config(os.path.join(place, "config.json"))
        ckpt0.write(made, options_of)
        good = numbers16.bf16_bits(made.tensors["0.query"].scales).tobytes()
        spoil(os.path.join(place, "ckpt-0", "tensor00007_000"), good, good[:2] + struct.pack("<H", scale) + good[4:])
    return fill


def q8_0(scale):
    """GGUF whose embedding has a bad scale in row 1."""
    def fill(place):
        options_of = generate.parse(["--layout", "gguf", "--grid", "q8_0", "--store", "q8_0", "-o", place])
        made = model.Model(options_of)
        made.write_config(os.path.join(place, "config.json"))
        gguf.write(made, options_of)
        _, good = gguf.coded(made.tensors["embedding"], "q8_0")
        spoil(os.path.join(place, "model.gguf"), good, good[:34] + struct.pack("<H", scale) + good[36:])
    return fill


def spoil(path, good, bad):
    with open(path, "rb") as file:
        data = file.read()
    if data.count(good) != 1:
        sys.exit(f"{path}: the scales are not there once")
    with open(path, "wb") as file:
        file.write(data.replace(good, bad))


CASES = {
    "nan": jax(0x7FC0, "--wide"),
    "infinite": jax(0x7F80, "--wide"),
    "minus-infinite": jax(0xFF80),
    "product": jax(0x7F7F, "--wide"),
    "minus-product": jax(0xFF7F),
    "q8_0-nan": q8_0(0x7E00),
    "q8_0-infinite": q8_0(0x7C00),
}

if __name__ == "__main__":
    for dtype in ("bf16", "f16", "int8", "fp8"):
        print(dtype)
        faults.run(sys.argv[1], sys.argv[2], CASES, options=("--dtype", dtype))
