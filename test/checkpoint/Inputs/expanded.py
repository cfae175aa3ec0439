"""Compiles tensors that PyTorch's expand() has made, and the same ones written out, and compares the weights: GROKC STRIDES.

STRIDES are those of every tensor of as many dimensions: "1,0" has rows of one value each, "0,1" the same row again.
"""
import filecmp
import os
import shutil
import subprocess
import sys

import faults  # puts the generator on the path
import generate
import model
import safetensors
import torchfile

grokc, strides = sys.argv[1], tuple(map(int, sys.argv[2].split(",")))
STORE, WIDTH, FOLDER = "bf16", 2, "views"
MODEL = model.Model(generate.parse(["--layout", "torch", "--store", STORE, "-o", "unused"]))


def whole(shape):
    return (shape[1], 1) if len(shape) == 2 else (1,)


def expanded(shape, data):
    """A view whose storage has just the values that its strides of 0 leave."""
    if len(shape) != len(strides):
        return shape, whole(shape), data
    distinct = [size if stride else 1 for size, stride in zip(shape, strides)]
    storage = data[:distinct[0] * distinct[-1] * WIDTH] if len(shape) == 2 else data[:distinct[0] * WIDTH]
    return shape, strides, storage


def written_out(shape, strides, storage):
    rows, columns = shape if len(shape) == 2 else (1, shape[0])
    of_row, of_column = strides if len(shape) == 2 else (0, strides[0])
    places = ((r * of_row + c * of_column) * WIDTH for r in range(rows) for c in range(columns))
    return shape, whole(shape), b"".join(storage[at:at + WIDTH] for at in places)


def compiled(views, dtype):
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.mkdir(FOLDER)
    MODEL.write_config(os.path.join(FOLDER, "config.json"))
    with open(os.path.join(FOLDER, "pytorch_model.bin"), "wb") as file:
        file.write(torchfile.zip_bytes(torchfile.archive_of_views(views, STORE)))
    bundle = os.path.join(FOLDER, "out.grok")
    subprocess.run([grokc, "compile", "--config", FOLDER, "--target", "cpu", "--dtype", dtype, "-o", bundle], check=True,
                   stderr=subprocess.DEVNULL)
    return os.path.join(bundle, "weights.blob")


VIEWS = {name: expanded(*tensor) for name, tensor in safetensors.contents(MODEL, STORE).items()}
PLAIN = {name: written_out(*view) for name, view in VIEWS.items()}
if VIEWS == PLAIN:
    sys.exit(f"{strides}: no tensor is expanded")
for dtype in ("bf16", "int8"):
    os.replace(compiled(PLAIN, dtype), "plain.blob")
    if not filecmp.cmp("plain.blob", compiled(VIEWS, dtype), shallow=False):
        sys.exit(f"{strides} as {dtype}: another blob than of the same values written out")
