"""inputs_kept.py GROKC GROKRUN MODELS HAND-BUNDLE TARGETS DIR: every option that names an output, with the name of an input.

An input is named as it is, by a symbolic link, by a hard link, and, where it is a directory, by a new name inside of it.
"""
import os
import shutil
import subprocess
import sys

grokc, grokrun, models, hand_bundle, targets, directory = sys.argv[1:]
os.chdir(directory)
shutil.copytree(f"{models}/tiny-hash", "ck")
shutil.copytree(f"{models}/tiny-hash", "weights")
os.rename("ck/config.json", "config.json")
os.symlink("../config.json", "ck/config.json")  # as a download's cache has it
shutil.copy(f"{targets}/h200.json", "h200.json")
subprocess.run([hand_bundle, f"{models}/tiny-top2", "synthetic:1", "m.grok"], check=True)
for name in ("ids", "requests"):
    with open(name, "w") as f:
        f.write("1,2,3,4,5\n")

cpu = ["--device", "cpu"]
compiled = [grokc, "compile", "--config", "ck", "--weights", "weights", "--target", "h200.json", "--emit=grok", "-o"]
bench = [grokrun, "bench", "m.grok", *cpu]
request = [*bench, "--mode", "request", "--requests", "1", "--prompt-tokens", "2", "--new-tokens", "2"]
commands = [
    (compiled, ["ck", "weights", "h200.json"]),
    ([grokc, "inspect", "m.grok", "--report"], ["m.grok"]),
    ([grokrun, "logits", "m.grok", *cpu, "--ids", "ids", "-o"], ["m.grok", "ids"]),
    ([grokrun, "eval", "m.grok", *cpu, "--ids", "ids", "--window", "4", "--expert-histogram"], ["m.grok", "ids"]),
    ([grokrun, "replay", "m.grok", *cpu, "--requests", "requests", "-o"], ["m.grok", "requests"]),
    ([*bench, "--context", "4", "--steps", "1", "--json"], ["m.grok"]),
    ([*request, "--report"], ["m.grok"]),
]


def contents():
    found = {}
    for folder, _, names in os.walk("."):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                found[os.path.join(folder, name)] = f.read()
    return found


refused = 0


def refuse(command, output, whole):
    global refused
    run = subprocess.run([*command, output], capture_output=True, text=True)
    said = f"error: {output}: found a file of the input {whole}, expected an output apart from it; choose another name\n"
    assert (run.returncode, run.stderr) == (1, said), (command, output, run)
    refused += 1


before = contents()
for command, inputs in commands:
    for whole in inputs:
        file = whole
        if os.path.isdir(whole):
            file = f"{whole}/{sorted(os.listdir(whole))[0]}"
            refuse(command, f"{whole}/new", whole)
        refuse(command, file, whole)
        os.link(os.path.realpath(file), "hard")
        refuse(command, "hard", whole)
        os.remove("hard")
        os.symlink(file, "soft")
        refuse(command, "soft", whole)
        os.remove("soft")
        assert contents() == before, (command, whole)
    subprocess.run([*command, "apart"], check=True, capture_output=True)
    os.remove("apart")

# No output lies in a bundle that is no input either.
shutil.copytree("m.grok", "other.grok")
before = contents()
for command, _ in commands:
    for output in ("other.grok/manifest.json", "other.grok/new"):
        run = subprocess.run([*command, output], capture_output=True, text=True)
        said = f"error: {output}: found a name inside of the bundle {os.path.realpath('other.grok')}, expected an output apart from it"
        assert (run.returncode, run.stderr) == (1, f"{said}; choose another name\n"), run
        refused += 1
assert contents() == before
shutil.rmtree("other.grok")
before = contents()

# A bundle replaces a bundle, but lies in none.
os.symlink("m.grok", "way")
retarget = [grokc, "retarget", "m.grok", "--banks", "3", "-o"]
packed = [grokc, "compile", "--config", "ck", "--weights", "weights", "--target", "cpu", "-o"]
for command in (retarget, packed):
    for output in ("m.grok/new", "m.grok/new/", "way/new", "./way/../m.grok/new"):
        run = subprocess.run([*command, output], capture_output=True, text=True)
        inside = f"error: {output.rstrip('/')}: found a name inside of the bundle {os.path.realpath('m.grok')}, expected an output apart from it"
        assert run.returncode == 1 and f"{inside}; choose another name\n" in run.stderr, run
        refused += 1
os.remove("way")
assert contents() == before

# What leads out of a checkpoint is of it as well.
refuse(compiled, "config.json", "ck")
run = subprocess.run([grokrun, "serve", "m.grok", *cpu, "--socket", "m.grok/s"], capture_output=True, text=True)
assert run.returncode == 1 and "m.grok/s: found a file of the input m.grok" in run.stderr, run
assert contents() == before
print(refused, "outputs refused, inputs as they were, others written")
