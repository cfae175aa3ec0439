"""Writes a small random checkpoint, with its config.json, in any of the public layouts.

The same --family, --layers, --seed and --grid give the same logical tensors whatever the layout, so the blobs that are
packed from them must be equal. Needs Python 3.9 and no package.
"""
import argparse
import os
import sys

import ckpt0
import gguf
import model
import safetensors
import tokjson
import torchfile

LAYOUTS = {
    "safetensors": lambda m, o: safetensors.write_single(m, o),
    "safetensors-sharded": lambda m, o: safetensors.write_sharded(m, o),
    "safetensors-tp": lambda m, o: safetensors.write_tensor_parallel(m, o),
    "torch": lambda m, o: torchfile.write_single(m, o),
    "torch-sharded": lambda m, o: torchfile.write_sharded(m, o),
    "gguf": lambda m, o: gguf.write(m, o),
    "gguf-split": lambda m, o: gguf.write_split(m, o),
    "ckpt-0": lambda m, o: ckpt0.write(m, o),
}
STORES = {
    "safetensors": ("bf16", "f16", "f32"),
    "torch": ("bf16", "f16", "f32"),
    "gguf": ("bf16", "f16", "f32", "q8_0"),
    "ckpt-0": ("int8",),
}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layout", required=True, choices=LAYOUTS)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="directory to write; made if it is missing")
    parser.add_argument("--family", default="grok-1", choices=model.FAMILIES,
                        help="grok-1: tied head; grok-2: dense MLP, soft-caps, its own head")
    parser.add_argument("--layers", type=int, default=2, metavar="L")
    parser.add_argument("--seed", default="1", metavar="S")
    parser.add_argument("--grid", default="half", choices=model.GRIDS,
                        help="what values matrices have: exact in every 16-bit type; int8 times Q8_0's or ckpt-0's scales; "
                        "or int8 times powers of two, exact in ckpt-0 and in every 16-bit type")
    parser.add_argument("--blocks", type=int, default=8, metavar="G",
                        help="blocks of inputs with scales of their own, in ckpt-0's row-parallel matrices")
    parser.add_argument("--wide", action="store_true",
                        help="rows of 256 in those matrices, so that each of 8 blocks is whole steps of 32")
    parser.add_argument("--store", metavar="TYPE", help="element type in the files (default: the layout's first): "
                        + "; ".join(f"{k}: {', '.join(v)}" for k, v in STORES.items()))
    parser.add_argument("--spelling", default="self_attn", choices=model.SPELLINGS,
                        help="names in safetensors and .bin")
    parser.add_argument("--vocabulary", type=int, default=48, metavar="V")
    parser.add_argument("--tokenizer", action="store_true", help="also write a small tokenizer.tok.json, as Grok-2 has; "
                        "needs a vocabulary of 300 or more")
    parser.add_argument("--old-names", action="store_true", help="gguf: the first name of the norm after the experts")
    parser.add_argument("--zip64", action="store_true", help="torch: the records of files above 4 GB")
    parser.add_argument("--transposed", action="store_true", help="torch: matrices as transposed views of their storage")
    options = parser.parse_args(argv)
    stores = STORES[options.layout.replace("safetensors-tp", "safetensors").replace("-sharded", "").replace("-split", "")]
    options.store = options.store or stores[0]
    if options.store not in stores:
        parser.error(f"--store: found '{options.store}', expected {' or '.join(stores)} for {options.layout}")
    needs = {"q8_0": ("q8_0",), "int8": ("int8", "int8-exact")}.get(options.store)
    if needs and options.grid not in needs:
        wanted = "' or '".join(needs)
        parser.error(f"--grid: found '{options.grid}', expected '{wanted}', values that {options.store} can hold")
    wide = model.WIDE if options.wide else model.NARROW
    inputs = (model.H * wide[0], wide[1])  # of attn_out and down
    if options.blocks < 1 or any(size % options.blocks for size in inputs):
        parser.error(f"--blocks: found {options.blocks}, expected a divisor of {inputs[0]} and {inputs[1]}, the inputs of the "
                     "row-parallel matrices")
    if options.tokenizer and options.vocabulary < 300:
        parser.error(f"--vocabulary: found {options.vocabulary}, expected 300 or more with --tokenizer")
    if options.family == "grok-2" and options.layout == "ckpt-0":
        parser.error("--family: found 'grok-2', expected 'grok-1': ckpt-0 is a layout of Grok-1")
    return options


def main(argv):
    options = parse(argv)
    os.makedirs(options.output, exist_ok=True)
    made = model.Model(options)
    made.write_config(os.path.join(options.output, "config.json"))
    LAYOUTS[options.layout](made, options)
    if options.tokenizer:
        tokjson.write(os.path.join(options.output, "tokenizer.tok.json"))


if __name__ == "__main__":
    main(sys.argv[1:])
