"""Writes bundles onto disks of every size from nothing to enough: SOURCE GROKC GROKRUN FOLDER.

FOLDER becomes the place of a small disk, in a mount namespace of this process's own.
"""
import os
import subprocess
import sys

import tools

source, grokc, grokrun, folder = sys.argv[1:]
PAGE, SIZES = 4096, 12
NUMBERS = " are available on the disk"
disk = f"{folder}/disk"
os.mkdir(disk)
model = tools.checkpoint(source, f"{folder}/model", "--layout", "safetensors", "--vocabulary", "8")
compiled = [grokc, "compile", "--config", model, "--target", "cpu"]
tools.ok(*compiled, "-o", f"{folder}/m.grok")
tools.ok(*compiled, "--weights", "none", "-o", f"{folder}/none.grok")
whole = sum(-os.path.getsize(f"{folder}/m.grok/{n}") // PAGE for n in tools.entries(f"{folder}/m.grok")) * -PAGE


def mounted(size, *command):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
    status, last, _ = tools.run(*command)
    left = tools.entries(disk)
    if status == 0 and left and left[0].endswith(".grok"):
        tools.ok(grokrun, "verify", f"{disk}/{left[0]}")
    subprocess.run(["umount", disk], check=True)
    return status, last, left


outputs = {
    "compile": ["m.grok", *compiled, "-o", f"{disk}/m.grok"],
    "retarget": ["m.grok", grokc, "retarget", f"{folder}/m.grok", "--target", "cpu", "-o", f"{disk}/m.grok"],
    "logits": ["logits", grokrun, "logits", f"{folder}/m.grok", "--device", "cpu", "--ids", "1,2,3", "-o", f"{disk}/logits"],
}
reasons = set()
for what, (name, *command) in outputs.items():
    refused = 0
    step = max(PAGE, whole // SIZES // PAGE * PAGE)
    for size in range(PAGE, 2 * whole + step, step):
        status, last, left = mounted(size, *command)
        if status == 0:
            if left != [name]:
                sys.exit(f"{what}: left {left}")
            break
        refused += 1
        if left:
            sys.exit(f"{what} on {size} bytes: left {left}: {last}")
        if "No space left on device; free some space or choose another place" not in last and NUMBERS not in last:
            sys.exit(f"{what} on {size} bytes: {last}")
        reasons.add("space was looked for first" if NUMBERS in last else "a write failed")
    else:
        sys.exit(f"{what}: never enough")
    print(what, "refused", refused > 0, "then written")
print(sorted(reasons))
