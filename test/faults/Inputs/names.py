"""Bundles, checkpoints and targets under odd names: SOURCE GROKC GROKRUN FOLDER."""
import os
import shutil
import sys

import tools

source, grokc, grokrun, folder = sys.argv[1:]
NAMES = ["a b", "it's", 'say "x"', "line\nbreak", "tab\there", "-o", "--help", "100%s%n", "\u65e5\u672c", "$HOME;`ls`&|", "*?[a]{b}",
         ".hidden", "ends.", "back\\slash", "#1", "x" * 200]
model = tools.checkpoint(source, f"{folder}/model", "--layout", "safetensors")
os.chdir(folder)
for name in [os.fsencode(n) for n in NAMES] + [b"\xff\xfe is no UTF-8"]:
    place = b"./" + name
    os.mkdir(place)
    shutil.copytree(os.fsencode(model), place + b"/model")
    shutil.copyfile(f"{source}/targets/cpu.json", place + b"/target.json")
    bundle = place + b"/" + name + b".grok"
    tools.ok(grokc, "compile", "--config", place + b"/model", "--target", place + b"/target.json", "-o", bundle)
    tools.ok(grokc, "compile", "--config", place + b"/model", "--target", "cpu", "-o", bundle)  # replaces it
    tools.ok(grokrun, "verify", bundle)
    tools.ok(grokrun, "generate", bundle, "--device", "cpu", "--ids", "1", "-n", "1")
    tools.ok(grokc, "inspect", bundle)
    tools.ok(grokc, "inspect", "--json", bundle)
    tools.ok(grokc, "retarget", bundle, "--target", "cpu", "-o", place + b"/" + name + b"2.grok")
    tools.ok(grokrun, "check", place + b"/model")
    tools.refused(grokrun, "verify", place + b"/none")
    left = sorted(os.listdir(place))
    if left != sorted([b"model", b"target.json", name + b".grok", name + b"2.grok"]):
        sys.exit(f"{name}: left {left}")
# As long as a name may be: what lies beside it until it is done has no name any more.
for bundle in ("y" * 250, "y" * 255):
    reason = tools.refused(grokc, "compile", "--config", model, "--target", "cpu", "-o", bundle)
    if "File name too long; choose a shorter one" not in reason or os.path.exists(bundle):
        sys.exit(reason)
print("all as under plain names")
