"""Writes a config with other values: IN OUT KEY=JSON..."""
import json
import sys

with open(sys.argv[1]) as f:
    config = json.load(f)
for change in sys.argv[3:]:
    key, _, text = change.partition("=")
    config[key] = json.loads(text)
with open(sys.argv[2], "w") as f:
    json.dump(config, f, indent=2)
