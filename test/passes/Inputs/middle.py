"""Checks the plan on stdin: a step of batch 2 is expected half way between its best and its worst case, by every term."""
import math
import re
import sys

(line,) = re.findall(r"plan.prediction step batch 2 .*", sys.stdin.read())
time = {case: float(re.search(rf"{case} ([^ ]+) experts", line)[1]) for case in ("best", "expected", "worst")}
experts = float(re.search(r"expected [^ ]+ experts ([^ ]+)", line)[1])
terms = [dict(re.findall(r"(\w+_us) = ([^ ]+)", text)) for text in re.findall(r"{([^}]+_us[^}]+)}", line)]
assert time["best"] < time["worst"] and math.isclose(experts, 1.5), line
assert math.isclose(time["expected"], (time["best"] + time["worst"]) / 2), time
for name, us in terms[1].items():
    assert math.isclose(float(us), (float(terms[0][name]) + float(terms[2][name])) / 2), (name, terms)
