"""Checks what `grokc inspect --json` says of tiny-hash for an H200, policies group and expert."""
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["model"]["num_experts"] == 32 and report["target"]["name"] == "h200"
assert len(report["experts"]["kept"]) == 16 and len(report["experts"]["unreachable"]) == 16
banks = report["banks"]
assert banks["count"] == 8 == len(banks["segments"])
for entry in banks["experts"]:
    group, index = divmod(entry["expert"], 8)
    assert entry["group"] == group
    held = [b for b, n in enumerate(entry["bytes"]) if n]
    assert held == [(group + index) % 8], entry
# Every class leads to one kept expert, and to that expert's bytes.
of_expert = {entry["expert"]: entry["bytes"] for entry in banks["experts"]}
classes = [c for entry in banks["classes"] for c in entry["classes"]]
assert sorted(classes) == list(range(64))
for entry in banks["classes"]:
    (expert,) = entry["experts"]
    assert entry["bytes"] == of_expert[expert]
assert not banks["collisions"]
for segment in banks["segments"]:
    assert segment["offset"] % (2 << 20) == 0 and segment["used_bytes"] <= segment["bytes"]
memory = report["memory"]
assert memory["needed_bytes"] == memory["blob_bytes"] + memory["arena_bytes"]
assert memory["kv_reserve_bytes"] % (200 << 20) == 0
assert memory["arena"][-1]["name"] == "kv"
assert all(p["best"]["us"] <= p["expected"]["us"] <= p["worst"]["us"] for p in report["prediction"]["predictions"])
assert report["weights"] == {"kind": "none"} and "weights.blob" not in report["files"]
