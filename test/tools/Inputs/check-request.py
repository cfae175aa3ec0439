"""Checks the file of `grokrun bench --mode request --json`: every key, and that the numbers fit each other."""
import argparse
import json
import math

parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("--requests", type=int)
parser.add_argument("--new-tokens", type=int)
parser.add_argument("--device", action="store_true", help="it ran on a GPU, whose clocks were read")
args = parser.parse_args()
report = json.load(open(args.file))

optional = {
    "id_us": args.new_tokens > 1,
    "deadline_us": "deadline_us" in report,
    "deadline_misses": "deadline_us" in report,
    "locked_mhz": "locked_mhz" in report,
    "device_bytes": args.device,
    "predicted": "predicted" in report,
    "no_readings": not args.device,
}
keys = """device target mode batch prompt_tokens new_tokens requests warm_up_requests seed pass_tokens request_us
first_id_us id_us deadline_us deadline_misses locked_mhz device_bytes resident_bytes predicted slow no_readings
request_times_us first_id_times_us request_at_s readings""".split()
expected = [key for key in keys if optional.get(key, True)]
assert list(report) == expected, (list(report), expected)


def close(a, b):
    assert math.isclose(a, b, rel_tol=1e-9), (a, b)


def check(distribution, times):
    ordered = sorted(times)
    for key, share in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}.items():
        close(distribution[key], ordered[max(math.ceil(share * len(ordered)), 1) - 1])
    close(distribution["max"], ordered[-1])
    mean = sum(times) / len(times)
    close(distribution["mean"], mean)
    deviation = math.sqrt(sum((t - mean) ** 2 for t in times) / len(times))
    assert math.isclose(distribution["deviation"], deviation, rel_tol=1e-6, abs_tol=1e-6)


times, first, at = report["request_times_us"], report["first_id_times_us"], report["request_at_s"]
assert len(times) == len(first) == len(at) == args.requests == report["requests"]
check(report["request_us"], times)
check(report["first_id_us"], first)
# A request's ids are known while it runs, and requests don't overlap.
assert all(0 < f <= t for f, t in zip(first, times))
assert all(a * 1e6 + t <= b * 1e6 for a, t, b in zip(at, times, at[1:]))
if args.new_tokens > 1:
    # The ids after the first take what is left of a request, but for its end.
    left = sum(times) - sum(first)
    assert 0 < report["id_us"]["mean"] * (args.new_tokens - 1) * args.requests <= left * (1 + 1e-9)
if "deadline_us" in report:
    assert report["deadline_misses"] == sum(t > report["deadline_us"] for t in times)
for memory in ["device_bytes"] * args.device + ["resident_bytes"]:
    m = report[memory]
    assert list(m) == ["before", "after", "most"] and 0 < m["before"] <= m["most"] >= m["after"], m
if args.device:
    assert report["device_bytes"]["before"] == report["device_bytes"]["after"] == report["device_bytes"]["most"]
    assert report["readings"]
if "predicted" in report:
    p = report["predicted"]
    for case in (p["best"], p["expected"], p["worst"]):
        assert math.isclose(case["us"], sum(case["terms_us"].values()), rel_tol=1e-6), case
    close(p["p50_over_best"], report["request_us"]["p50"] / p["best"]["us"])
    close(p["p50_over_expected"], report["request_us"]["p50"] / p["expected"]["us"])
    close(p["max_over_worst"], report["request_us"]["max"] / p["worst"]["us"])
limit = min(1.05 * report["request_us"]["p50"], report.get("deadline_us", math.inf))
slow = sorted((t for t in times if t > limit), reverse=True)[:20]
assert [s["us"] for s in report["slow"]] == slow
assert all(times[s["request"]] == s["us"] and ("reading" in s) == args.device for s in report["slow"])
