"""Checks the file of `grokrun bench --json`: every key, and that the numbers fit each other."""
import json
import math
import sys

report = json.load(open(sys.argv[1]))
steps = int(sys.argv[2])
keys = """device target mode batch context steps warm_up_steps seed ceiling_gb_s experts_per_step bytes_per_step
byte_time_us step_us tokens_per_second ceiling_ratio hand_overs_per_step step_times_us""".split()
if "predicted" in report:
    keys.insert(-1, "predicted")
assert list(report) == keys, list(report)


def close(a, b):
    assert math.isclose(a, b, rel_tol=1e-9), (a, b)


times = report["step_times_us"]
assert len(times) == steps == report["steps"] and min(times) > 0
step = report["step_us"]
assert list(step) == ["p50", "p99", "p999", "max", "mean"]
close(step["mean"], sum(times) / steps)
close(step["max"], max(times))
close(step["p50"], sorted(times)[(steps + 1) // 2 - 1])
assert step["p50"] <= step["p99"] <= step["p999"] <= step["max"]
close(report["tokens_per_second"], report["batch"] / step["mean"] * 1e6)

size = report["bytes_per_step"]
assert list(size) == ["qkv", "attn_out", "experts", "dense_mlp", "vectors", "head", "embedding", "kv", "total"]
close(size["total"], sum(size.values()) - size["total"])
close(report["byte_time_us"], size["total"] / report["ceiling_gb_s"] / 1e3)
close(report["ceiling_ratio"], report["byte_time_us"] / step["mean"])
if "predicted" in report:
    p = report["predicted"]
    for case in (p["best"], p["expected"], p["worst"]):
        assert math.isclose(case["us"], sum(case["terms_us"].values()), rel_tol=1e-6), case
    close(p["p50_over_best"], step["p50"] / p["best"]["us"])
    close(p["p50_over_expected"], step["p50"] / p["expected"]["us"])
    close(p["p50_over_worst"], step["p50"] / p["worst"]["us"])
    close(p["max_over_worst"], step["max"] / p["worst"]["us"])
