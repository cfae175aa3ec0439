"""Compiles one model with weights of int8 from ckpt-0 and from safetensors, and compares their logits.

int8_logits.py GROKC GROKRUN BLOCKS BOUND
"""
import math
import os
import subprocess
import sys

import faults

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../runtime/Inputs"))
import compare

IDS = ",".join(str(i * 7 % 48) for i in range(24))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stderr


def logits(grokc, grokrun, name, dtype, *options):
    """What the compiler says of rounding, and the logits."""
    faults.generate(name, "--grid", "int8", "--wide", "--layers", "12", *options)
    bundle = f"{name}-{dtype}.grok"
    said = run(grokc, "compile", "--config", name, "--target", "cpu", "--dtype", dtype, "-o", bundle)
    run(grokrun, "logits", bundle, "--device", "cpu", "--ids", IDS, "-o", f"{bundle}.safetensors")
    rounded = [line.split("weights: ")[1] for line in said.splitlines() if "elements rounded" in line]
    return rounded, compare.read(f"{bundle}.safetensors")["logits"][1]


def difference(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))


def main(grokc, grokrun, blocks, bound):
    stored, ours = logits(grokc, grokrun, "g" + blocks, "int8", "--blocks", blocks, "--layout", "ckpt-0")
    again, theirs = logits(grokc, grokrun, "f" + blocks, "int8", "--blocks", blocks, "--layout", "safetensors", "--store", "f32")
    _, halves = logits(grokc, grokrun, "f" + blocks, "bf16", "--blocks", blocks, "--layout", "safetensors", "--store", "f32")
    print(f"from ckpt-0: {stored}")
    print(f"from safetensors: {again}")
    compare.check("int8 as stored against bf16", difference(ours, halves), float(bound))
    compare.check("int8 quantised again against int8 as stored", difference(theirs, ours), float(bound))


if __name__ == "__main__":
    main(*sys.argv[1:])
