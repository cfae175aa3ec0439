"""Gives every path of both tools a link to itself, a path through one, a name that is too long and a path below a file:
GROKC GROKRUN MODEL FOLDER, where FOLDER holds the bundle m.grok."""
import os
import subprocess
import sys

grokc, grokrun, model, folder = sys.argv[1:]
bundle = f"{folder}/m.grok"
os.symlink("loop", f"{folder}/loop")
config = f"{model}/config.json"
shown = set()
for path in [f"{folder}/loop", f"{folder}/loop/x", f"{folder}/{'n' * 300}", f"{config}/x"]:
    compiled = [grokc, "compile", "--target", "cpu"]
    inputs = [
        [grokc, "inspect", path],
        [grokc, "routing", "--config", path],
        [grokc, "routing", "--config", config, "--tokens", path],
        [grokc, "retarget", path, "--target", "cpu", "-o", f"{folder}/out"],
        [grokc, "retarget", bundle, "--target", path, "-o", f"{folder}/out"],
        [*compiled, "--config", path, "--weights", "none", "-o", f"{folder}/out"],
        [*compiled, "--config", config, "--weights", path, "-o", f"{folder}/out"],
        [*compiled, "--config", config, "--weights", "none", "--expert-pruning-ratio", "0.5", "--expert-histogram", path,
         "-o", f"{folder}/out"],
        [grokrun, "verify", path],
        [grokrun, "pack", path, "--weights", "synthetic:1"],
        [grokrun, "generate", path, "--ids", "1"],
        [grokrun, "generate", bundle, "--ids", path],
        [grokrun, "replay", bundle, "--requests", path],
    ]
    outputs = [
        [grokrun, "logits", bundle, "--device", "cpu", "--ids", "1", "-o", f"{path}/x"],
        [grokrun, "bench", bundle, "--device", "cpu", "--context", "1", "--steps", "1", "--json", f"{path}/x"],
        [grokc, "retarget", bundle, "--target", "cpu", "-o", f"{path}/x"],
        [*compiled, "--config", config, "--weights", "none", "-o", f"{path}/x"],
        [*compiled, "--config", config, "--emit", "grok", "-o", f"{path}/x"],
    ]
    for command in inputs + outputs:
        r = subprocess.run(command, capture_output=True, text=True)
        last = (r.stderr.splitlines() or [""])[-1]
        if r.returncode != 1 or not last.startswith("error: "):
            sys.exit(f"{command}: exit {r.returncode}: {r.stderr}")
        shown.add(last)
# A checkpoint whose file is a link to itself.
os.mkdir(f"{folder}/checkpoint")
os.symlink("model.safetensors", f"{folder}/checkpoint/model.safetensors")
for command in [[grokc, "compile", "--target", "cpu", "--config", config, "--weights", f"{folder}/checkpoint",
                 "-o", f"{folder}/out"]]:
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode != 1 or "error: " not in r.stderr:
        sys.exit(f"{command}: exit {r.returncode}: {r.stderr}")
    shown.add(r.stderr.splitlines()[-1])
print("\n".join(sorted(shown)))
print("all refused")
