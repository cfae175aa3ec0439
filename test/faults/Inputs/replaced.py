"""Replaces a bundle while it is loaded: SOURCE GROKC GROKRUN FOLDER."""
import ctypes
import json
import os
import random
import sys
import threading
import time

import tools

source, grokc, grokrun, folder = sys.argv[1:]
MOST_LOADS, OF_EACH, AT_FDCWD, RENAME_EXCHANGE = 400, 5, -100, 2
libc = ctypes.CDLL(None, use_errno=True)


def exchange(a, b):
    if libc.renameat2(AT_FDCWD, a.encode(), AT_FDCWD, b.encode(), RENAME_EXCHANGE) != 0:
        sys.exit("renameat2: " + os.strerror(ctypes.get_errno()))


def command(bundle):
    return [grokrun, "logits", bundle, "--device", "cpu", "--ids", "1,2,3", "-o", f"{folder}/logits"]


def logits():
    with open(f"{folder}/logits", "rb") as file:
        return file.read()


# Bundles of the same shapes and sizes, with other weights and another constant.
for seed in "ab":
    tools.checkpoint(source, f"{folder}/{seed}", "--layout", "safetensors", "--seed", seed)
with open(f"{folder}/b/config.json") as file:
    config = json.load(file)
config["embedding_multiplier_scale"] *= 2
with open(f"{folder}/b/config.json", "w") as file:
    json.dump(config, file)
for seed in "ab":
    tools.ok(grokc, "compile", "--config", f"{folder}/{seed}", "--target", "cpu", "-o", f"{folder}/{seed}.grok")
sizes = [os.path.getsize(f"{folder}/{seed}.grok/weights.blob") for seed in "ab"]
assert sizes[0] == sizes[1]
right = []
for seed in "ab":
    tools.ok(*command(f"{folder}/{seed}.grok"))
    right.append(logits())
assert right[0] != right[1]

done = threading.Event()


def replace():
    rng = random.Random(1)
    while not done.is_set():
        exchange(f"{folder}/a.grok", f"{folder}/b.grok")
        time.sleep(rng.random() * 0.03)


replacer = threading.Thread(target=replace)
replacer.start()
seen = [0, 0]
try:
    for _ in range(MOST_LOADS):
        if min(seen) >= OF_EACH:
            break
        status, reason, _ = tools.run(*command(f"{folder}/a.grok"))
        if status == 0:
            seen[right.index(logits())] += 1  # one bundle's, not those of a mixture
        elif "found another bundle each of the 4 times" not in reason:
            sys.exit(reason)
finally:
    done.set()
    replacer.join()
if min(seen) < OF_EACH:
    sys.exit(f"loaded {seen} times")
print("one of the two each time")
