"""Small bundles of every kind, to be damaged."""
import collections
import json
import os
import shutil
import stat
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
# Parts of which a plan is small.
SMALL = {"sm_count": 3, "bank_count": 2, "bank_align": 512}

Original = collections.namedtuple("Original", "path prompt")


def targets(folder):
    """Target descriptions of small parts: name to file."""
    files = {}
    for part in ("cpu", "h200"):
        with open(f"{ROOT}/targets/{part}.json") as file:
            target = {**json.load(file), **SMALL}
        files[part] = f"{folder}/{part}.json"
        with open(files[part], "w") as file:
            json.dump(target, file)
    return files


def quietly(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"{command}: {r.stderr}")


def make(grokc, grokrun, folder):
    """Compiles them into `folder`; a blob or a recipe, the CPU or a GPU, hash or learned, with a tokenizer or without."""
    os.makedirs(folder)
    parts = targets(folder)
    made = []
    for name, model, part, packed, options in (
            ("hash", "hash", "cpu", True, ()),
            ("recipe", "hash", "cpu", False, ()),
            ("learned", "learned", "cpu", True, ("--activations", "split")),
            ("gpu", "learned", "h200", True, ("--max-prefill", "64", "--trace"))):
        path = f"{folder}/{name}.grok"
        quietly(grokc, "compile", "--config", f"{ROOT}/test/fuzz/models/{model}.json", "--target", parts[part],
                "--weights", "synthetic:1", *options, "-o", path)
        if packed:
            quietly(grokrun, "pack", path, "--weights", "synthetic:1")
        made.append(Original(path, ("--ids", "1,5,9")))
    quietly(sys.executable, f"{ROOT}/tools/checkpoints/generate.py", "--layout", "safetensors", "--vocabulary", "300",
            "--tokenizer", "--layers", "1", "-o", f"{folder}/checkpoint")
    path = f"{folder}/text.grok"
    quietly(grokc, "compile", "--config", f"{folder}/checkpoint", "--target", parts["cpu"], "--max-seq", "64", "-o", path)
    made.append(Original(path, ("--prompt", "Hello the man")))
    return made


def remove(path):
    """A bundle, whatever became of it."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, stat.S_IRWXU)
        shutil.rmtree(path)
    else:
        os.unlink(path)
