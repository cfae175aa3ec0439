"""Compiles onto a disk that has room for one bundle and holds what a killed run left: SOURCE GROKC FOLDER.

FOLDER becomes the place of a small disk, in a mount namespace of this process's own.
"""
import os
import subprocess
import sys

import tools

source, grokc, folder = sys.argv[1:]
disk, reference = f"{folder}/disk", f"{folder}/m.grok"
os.mkdir(disk)
model = tools.checkpoint(source, f"{folder}/model", "--layout", "safetensors", "--vocabulary", "2048")
command = [grokc, "compile", "--config", model, "--target", "cpu", "-o"]
tools.ok(*command, reference)
blob = os.path.getsize(f"{reference}/weights.blob")
size = sum(os.path.getsize(f"{reference}/{name}") for name in tools.entries(reference)) + blob // 2
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk], check=True)
output = f"{disk}/m.grok"
left = f"{output}.tmp-{1 << 30}"  # above every number of a process
os.mkdir(left)
with open(f"{left}/packing", "w") as file:
    file.write("another key\n")
with open(f"{left}/weights.blob", "wb") as file:
    os.posix_fallocate(file.fileno(), 0, blob)
print(tools.refused(*command, output).replace(disk + "/", ""))
print(*tools.entries(disk))
subprocess.run(tools.refused(*command, output).split("; remove it with ")[1], shell=True, check=True)
tools.ok(*command, output)
print(*tools.entries(disk))
