"""Checks the trace of the stand-in's kernel: a track a slot, a span a phase, waits inside them."""
import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert names == {slot: f"slot {slot}" for slot in range(132)}
assert events[0]["name"] == "process_name"
spans = [e for e in events if e["ph"] == "X" and e["tid"] == 0]
phases = [e for e in spans if e["name"] != "wait"]
assert [(e["name"], e["args"]["step"]) for e in phases] == [
    (name, step) for step in range(4) for name in ("qkv", "head", "choice")
]
assert all(set(e) == {"ph", "name", "pid", "tid", "ts", "dur", "args"} for e in spans)
assert abs(phases[0]["dur"] - 30) < 0.01 and phases[0]["ts"] == 0 and phases[0]["args"] == {"step": 0, "layer": 0}
# Only phases that waited have a wait, which lies at their begin.
waits = [e for e in spans if e["name"] == "wait"]
assert len(waits) == 8 and all(abs(e["dur"] - 10) < 0.01 for e in waits)
assert [e["ts"] for e in waits] == [e["ts"] for e in phases if e["name"] != "head"]
