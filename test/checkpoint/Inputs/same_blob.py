"""Generates a checkpoint, compiles it as a bundle was, and compares the weights byte by byte."""
import filecmp
import json
import os
import shutil
import subprocess
import sys

import faults


def main(grokc, bundle, *options):
    shutil.rmtree("other", ignore_errors=True)
    shutil.rmtree("other.grok", ignore_errors=True)
    faults.generate("other", *options)
    with open(os.path.join(bundle, "manifest.json")) as file:
        target = json.load(file)["target"]["name"]
    with open(os.path.join(bundle, "model.json")) as file:
        options_of = json.load(file)["options"]
    dtype = options_of["dtype"] if options_of["quantization"] == "none" else options_of["quantization"]
    subprocess.run([grokc, "compile", "--config", "other", "--target", target, "--dtype", dtype, "-o", "other.grok"],
                   check=True)
    if not filecmp.cmp(os.path.join(bundle, "weights.blob"), "other.grok/weights.blob", shallow=False):
        sys.exit(f"{' '.join(options)}: another blob than {bundle}")


if __name__ == "__main__":
    main(*sys.argv[1:])
