"""Compiles one model with weights of int8 from ckpt-0 and from safetensors, and compares their logits.

Scales are powers of two, so that int8 times a scale is exact in bf16 and f16 too: wrong places of codes, scales or
blocks show.

int8_logits.py GROKC GROKRUN BLOCKS
"""
import math
import os
import subprocess
import sys

import faults

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../runtime/Inputs"))
import compare

# Sums in another order. A block of scales in another's place gives 0.2 or more.
SAME = 1e-5
# New scales round every code again, by 3e-3 of the weights, and a near tie of the router may fall the other way.
ROUNDED = 0.3
IDS = ",".join(str(i * 7 % 48) for i in range(24))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stderr


def logits(grokc, grokrun, name, dtype, *options):
    """What the compiler says of rounding, and the logits."""
    faults.generate(name, "--grid", "int8-exact", "--wide", "--layers", "12", *options)
    bundle = f"{name}-{dtype}.grok"
    said = run(grokc, "compile", "--config", name, "--target", "cpu", "--dtype", dtype, "-o", bundle)
    run(grokrun, "logits", bundle, "--device", "cpu", "--ids", IDS, "-o", f"{bundle}.safetensors")
    rounded = [line.split("weights: ")[1] for line in said.splitlines() if "elements rounded" in line]
    return rounded, compare.read(f"{bundle}.safetensors")["logits"][1]


def difference(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))


def main(grokc, grokrun, blocks):
    stored, ours = logits(grokc, grokrun, "g" + blocks, "int8", "--blocks", blocks, "--layout", "ckpt-0")
    same = ("f" + blocks, "--blocks", blocks, "--layout", "safetensors", "--store", "f32")
    again, theirs = logits(grokc, grokrun, same[0], "int8", *same[1:])
    print(f"from ckpt-0: {stored}")
    print(f"from safetensors: {again}")
    for dtype in ("bf16", "f16"):
        _, halves = logits(grokc, grokrun, same[0], dtype, *same[1:])
        compare.check(f"int8 as stored against {dtype}", difference(ours, halves), SAME)
    compare.check("int8 quantised again against int8 as stored", difference(theirs, ours), ROUNDED)


if __name__ == "__main__":
    main(*sys.argv[1:])
