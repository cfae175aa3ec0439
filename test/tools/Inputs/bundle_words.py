"""bundle_words.py GROKC GROKRUN DIR: each string and key of DIR/m.grok's manifest replaced by one that a terminal would obey."""
import copy
import hashlib
import json
import os
import shutil
import subprocess
import sys

grokc, grokrun, directory = sys.argv[1:]
os.chdir(directory)
HOSTILE = "a\x1b[31m\nerror: q\r\x7f\u009b1m"
with open("m.grok/manifest.json") as f:
    original = json.load(f)
shutil.copytree("m.grok", "bad.grok")
os.chmod("bad.grok/manifest.json", 0o644)


def words(node, path=()):
    """The place of every string, and of every key; of a list's items, which are alike, those of the first."""
    items = node.items() if isinstance(node, dict) else enumerate(node[:1])
    for key, value in items:
        if isinstance(key, str):
            yield (*path, key), True
        if isinstance(value, str):
            yield (*path, key), False
        elif isinstance(value, (dict, list)):
            yield from words(value, (*path, key))


def write(manifest):
    manifest["seal"] = "0" * 64
    text = json.dumps(manifest, indent=2)
    with open("bad.grok/manifest.json", "w") as f:
        f.write(text.replace("0" * 64, hashlib.sha256(text.encode()).hexdigest()))


def spoil(path, is_key):
    manifest = copy.deepcopy(original)
    node = manifest
    for step in path[:-1]:
        node = node[step]
    if is_key:
        node[HOSTILE] = node.pop(path[-1])
    else:
        node[path[-1]] = HOSTILE
    return manifest


def show(path):
    """With a word of the bundle's at `path`: how many lines inspect has, 0 if it refuses; and all that was printed."""
    commands = [[grokc, "inspect", "bad.grok", "--report", "page.html"], [grokc, "inspect", "--json", "bad.grok"],
                [grokrun, "verify", "bad.grok"]]
    if path[0] == "target":  # all that it prints of a bundle
        commands.append([grokrun, "bench", "bad.grok", "--device", "cpu", "--batch", "1", "--context", "512", "--steps", "1"])
    runs = [subprocess.run(command, capture_output=True) for command in commands]
    printed = b"".join(r.stdout + r.stderr for r in runs)
    if os.path.exists("page.html"):
        with open("page.html", "rb") as f:
            printed += f.read()
        os.remove("page.html")
    assert all(r.returncode in (0, 1) for r in runs), runs
    return runs[0].stdout.count(b"\n"), printed.decode()


write(copy.deepcopy(original))
lines, _ = show(("target",))
assert lines
tried = 0
for path, is_key in words(original):
    if path == ("seal",):
        continue
    write(spoil(path, is_key))
    shown, printed = show(path)
    name = ".".join(map(str, path))
    controls = {c for c in printed if c != "\n" and (ord(c) < 0x20 or 0x7f <= ord(c) < 0xa0)}
    assert not controls and "\nerror: q" not in printed, (name, controls)
    if shown:
        assert shown == lines, (name, shown, lines)
        print(f"{name}: shown")
    tried += 1
print(tried, "words: no control characters")
