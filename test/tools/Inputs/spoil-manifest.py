"""Spoils every member of a bundle's target description; inspect and verify must say the same: GROKC GROKRUN BUNDLE COPY."""
import hashlib
import json
import os
import shutil
import subprocess
import sys

grokc, grokrun, bundle, copy = sys.argv[1:]
shutil.rmtree(copy, ignore_errors=True)
shutil.copytree(bundle, copy)
with open(f"{bundle}/manifest.json") as f:
    text = f.read()


def check(what, spoil):
    manifest = json.loads(text)
    spoil(manifest["target"]["description"])
    manifest["seal"] = "0" * 64
    spoilt = json.dumps(manifest, indent=2)
    seal = hashlib.sha256(spoilt.encode()).hexdigest()
    os.chmod(f"{copy}/manifest.json", 0o644)
    with open(f"{copy}/manifest.json", "w") as f:
        f.write(spoilt.replace(manifest["seal"], seal))
    inspect, verify = (subprocess.run([tool, command, copy], capture_output=True, text=True)
                       for tool, command in [(grokc, "inspect"), (grokrun, "verify")])
    if inspect.returncode != 1 or verify.returncode != 1 or inspect.stderr != verify.stderr:
        sys.exit(f"{what}: inspect {inspect.returncode} {inspect.stderr!r}, verify {verify.returncode} {verify.stderr!r}")
    print(verify.stderr, end="")


for key, value in json.loads(text)["target"]["description"].items():
    check(f"no {key}", lambda d: d.pop(key))
    check(f"wrong {key}", lambda d: d.update({key: "x" if not isinstance(value, str) else 1}))
check("unknown", lambda d: d.update(unknown=1))
print("all alike")
