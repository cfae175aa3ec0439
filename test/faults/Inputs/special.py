"""Puts what is no regular file where each input is expected, and runs the tool that reads it.

special.py WORK GROKC GROKRUN GROK_OPT MODELS

Prints a line for each input with how many kinds were refused. Whatever ends otherwise than with status 1 and an error
that names the place, or takes long, is shown and ends this with status 1.
"""
import os
import pathlib
import shutil
import socket
import subprocess
import sys

work, grokc, grokrun, grok_opt, models = sys.argv[1:]
work = pathlib.Path(work)
model = pathlib.Path(models) / "tiny-hash"
bundle = work / "m.grok"
LONG = 60  # seconds; each takes a fraction of one
failures = 0


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG, stdin=subprocess.DEVNULL)


def put_pipe(place):
    os.mkfifo(place)


def put_socket(place):
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(place.parent)  # a socket's path is short
    listener.bind(place.name)
    os.chdir(here)
    listener.close()


def put_directory(place):
    place.mkdir()


def put_device(place):
    place.symlink_to("/dev/zero")


KINDS = [put_pipe, put_socket, put_directory, put_device]


def clear(place):
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif place.is_symlink() or place.exists():
        place.unlink()


def check(what, place, *command, kinds=KINDS):
    """Every kind in turn at `place`, which is as before afterwards."""
    global failures
    kept = place.read_bytes() if place.is_file() else None
    for put in kinds:
        clear(place)
        put(place)
        try:
            done = run(*map(str, command))
            good = done.returncode == 1 and "error: " in done.stderr and place.name in done.stderr
            shown = f"status {done.returncode}: {done.stderr.strip()[:300]}"
        except subprocess.TimeoutExpired:
            good, shown = False, "does not end"
        if not good:
            failures += 1
            print(f"{what}, {put.__name__}: {shown}")
    clear(place)
    if kept is not None:
        place.write_bytes(kept)
    print(f"{what}: {len(kinds)} kinds")


def copy(name):
    """A checkpoint of its own."""
    shutil.copytree(model, work / name)
    return work / name


shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
compiled = run(grokc, "compile", "--config", model, "--target", "cpu", "--max-seq", "64", "-o", str(bundle))
assert compiled.returncode == 0, compiled.stderr

x = work / "x.json"
emit = [grokc, "compile", "--emit=grok", "--target", "cpu"]
not_directory = [kind for kind in KINDS if kind is not put_directory]  # one may hold a config.json
check("--config", x, *emit, "--config", x, kinds=not_directory)
check("--target", x, grokc, "compile", "--emit=grok", "--config", model, "--target", x)
check("retarget --target", x, grokc, "retarget", bundle, "--target", x, "-o", work / "r.grok")
check("--expert-histogram", x, *emit, "--config", model, "--expert-pruning-ratio", "0.5", "--expert-histogram", x)
check("routing --config", x, grokc, "routing", "--config", x, kinds=not_directory)
check("routing --tokens", x, grokc, "routing", "--config", model, "--tokens", x)
check("check --config", x, grokrun, "check", model, "--config", x, kinds=not_directory)

checkpoint = copy("checkpoint")
weights = [grokc, "compile", "--config", checkpoint, "--target", "cpu", "-o", work / "c.grok"]
for name in ["config.json", "model.safetensors", "tokenizer.model"]:
    check(f"compile {name}", checkpoint / name, *weights)
(checkpoint / "tokenizer.model").unlink()
check("compile tokenizer.tok.json", checkpoint / "tokenizer.tok.json", *weights)
for name in ["config.json", "model.safetensors", "model.safetensors.index.json"]:
    check(f"check {name}", checkpoint / name, grokrun, "check", checkpoint)
check("check .gguf", work / "x.gguf", grokrun, "check", work / "x.gguf", kinds=not_directory)

for command in [["generate"], ["logits", "-o", work / "l.safetensors"], ["eval", "--window", "2"]]:
    check(f"{command[0]} --ids", x, grokrun, command[0], bundle, "--device", "cpu", "--ids", x, *command[1:])
check("replay", x, grokrun, "replay", bundle, "--requests", x, "-o", work / "l.safetensors")
for file in sorted(bundle.iterdir()):
    check(f"bundle {file.name}", file, grokrun, "verify", bundle)
    check(f"inspect {file.name}", file, grokc, "inspect", bundle)

check("GROK_CUDA_DRIVER", x, "env", f"GROK_CUDA_DRIVER={x}", grokrun, "probe")
check("GROK_TOKENIZER_PLUGIN", x, "env", f"GROK_TOKENIZER_PLUGIN={x}", grokrun, "generate", bundle, "--device", "cpu",
      "--prompt", "a")

hash_model = pathlib.Path(__file__).parent / "../../passes/Inputs/hash.mlir"
check("grok-opt", x, grok_opt, x)
check("grok-opt target", x, grok_opt, hash_model, f"--grok-form-phases=target={x}")
check("grok-opt histogram", x, grok_opt, hash_model, f"--grok-prune-experts=ratio=0.5 histogram={x}")
sys.exit(1 if failures else 0)
