"""least.py TARGETS OUT: the H200's description with the least numbers that the schema allows."""
import json
import sys

targets, out = sys.argv[1:]
with open(f"{targets}/schema.json") as f:
    rules = json.load(f)["properties"]
with open(f"{targets}/h200.json") as f:
    target = json.load(f)
for key, rule in rules.items():
    if rule.get("type") == "number":
        target[key] = rule["minimum"]
least = rules["stream_curve"]["items"]["items"]["minimum"]
target["stream_curve"] = [[least, least], [1, 1]]
with open(out, "w") as f:
    json.dump(target, f, indent=2)
