"""Makes a bundle of format 2 one of format 1: an option less, and the hash of the file that held it."""
import hashlib
import json
import sys

bundle = sys.argv[1]


def canonical(value):
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


model = json.load(open(f"{bundle}/model.json"))
del model["options"]["trace"]
text = canonical(model).encode()
open(f"{bundle}/model.json", "wb").write(text)
manifest = json.load(open(f"{bundle}/manifest.json"))
manifest["format_version"] = 1
manifest["files"]["model.json"] = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
open(f"{bundle}/manifest.json", "w").write(canonical(manifest))
