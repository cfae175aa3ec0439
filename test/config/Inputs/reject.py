"""Runs a tool on JSON files that it must reject and prints what it says.

usage: reject.py BASE OUT CASE... -- COMMAND...

A case edits the object in the file BASE into OUT, which COMMAND reads: `key=JSON` sets a key, `-key` removes one, several
edits are joined by `&`. `a.b=JSON` sets a key of the object `a`. Edited keys come first, so that the first edit is in
line 2 of the file. COMMAND must exit with 1 and say one line.
"""
import json
import os
import subprocess
import sys


def edit(config, case):
    first = {}
    for step in case.split("&"):
        if step.startswith("-"):
            del config[step[1:]]
            continue
        key, _, text = step.partition("=")
        outer, _, inner = key.partition(".")
        value = json.loads(text)
        if inner:
            config[outer] = {inner: value, **{k: v for k, v in config[outer].items() if k != inner}}
            first[outer] = config[outer]
        else:
            first[key] = value
    return {**first, **{k: v for k, v in config.items() if k not in first}}


split = sys.argv.index("--")
base, out, *cases = sys.argv[1:split]
command = sys.argv[split + 1 :]
for case in cases:
    with open(base) as f:
        changed = edit(json.load(f), case)
    with open(out, "w") as f:
        json.dump(changed, f, indent=2)
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 1 or run.stdout or run.stderr.count("\n") != 1:
        sys.exit(f"{case}: exit {run.returncode}, {run.stdout!r}, {run.stderr!r}")
    print(run.stderr.replace(out, os.path.basename(base)), end="")
