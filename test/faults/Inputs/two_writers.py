"""Several compiles into one output at the same time: SOURCE GROKC GROKRUN FOLDER."""
import os
import subprocess
import sys

import tools

source, grokc, grokrun, folder = sys.argv[1:]
ROUNDS, WRITERS = 6, 4


def manifest(bundle):
    with open(f"{bundle}/manifest.json", "rb") as file:
        return file.read()


checkpoints = [tools.checkpoint(source, f"{folder}/{seed}", "--layout", "safetensors", "--seed", seed) for seed in "ab"]
whole = []
for c in checkpoints:
    tools.ok(grokc, "compile", "--config", c, "--target", "cpu", "-o", f"{c}.grok")
    whole.append(manifest(f"{c}.grok"))
assert whole[0] != whole[1]
os.mkdir(f"{folder}/out")
out = f"{folder}/out/m.grok"
written = late = 0
for round in range(ROUNDS):
    if round % 2 == 0 and os.path.exists(out):  # half of the rounds begin with nothing there
        subprocess.run(["rm", "-r", out], check=True)
    writers = [subprocess.Popen([grokc, "compile", "--config", checkpoints[i % 2], "--target", "cpu", "-o", out],
                                stderr=subprocess.PIPE, text=True) for i in range(WRITERS)]
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        written += writer.returncode == 0
        late += writer.returncode == 1
        if writer.returncode != 0 and "found what another process has put there meanwhile" not in errors:
            sys.exit(f"status {writer.returncode}: {errors}")
    tools.ok(grokrun, "verify", out)
    if manifest(out) not in whole:
        sys.exit("a bundle of neither")
    if tools.entries(f"{folder}/out") != ["m.grok"]:
        sys.exit(f"left: {tools.entries(f'{folder}/out')}")
if written < ROUNDS or written + late != ROUNDS * WRITERS:
    sys.exit(f"{written} written, {late} too late")
print("one of them each time, whole")
