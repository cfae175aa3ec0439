#!/usr/bin/env python3
"""Runs lit and says what happened: skipped tests with their reason, failed ones by name, then one line with the counts.

The last line of the output is exactly 'N passed, N failed, N skipped'. The exit status is 0 only if at least one test
ran and none failed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def reason(test):
    """Why lit skipped a test: the features that it asks for and this machine lacks, or the ones it excludes."""
    text = test.get("output", "")
    found = re.search(r"unavailable features: (.*)", text)
    if found:
        return "needs " + found.group(1).strip()
    found = re.search(r"unsupported with the following features[^:]*: (.*)", text)
    if found:
        return "not with " + found.group(1).strip()
    return text.strip().splitlines()[0] if text.strip() else test["code"].lower()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lit", required=True, help="the lit program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests at a time")
    parser.add_argument("--max-minutes", type=int, default=40, help="end the whole run after this time")
    parser.add_argument("tests", nargs="+", help="folders or tests of a build's test directory")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        limits = [f"-j{options.jobs}", f"--max-time={options.max_minutes * 60}"]
        command = [options.lit, "-sv", *limits, "--output", report, *options.tests]
        status = subprocess.run(command).returncode
        try:
            with open(report, encoding="utf-8") as file:
                tests = json.load(file)["tests"]
        except (OSError, ValueError, KeyError):
            print(f"error: lit ended with status {status} and wrote no report", flush=True)
            tests = []

    tests.sort(key=lambda test: test["name"])
    passed = [test for test in tests if test["code"] in PASSED]
    skipped = [test for test in tests if test["code"] in SKIPPED]
    failed = [test for test in tests if test["code"] not in PASSED | SKIPPED]
    for test in skipped:
        print(f"skipped: {test['name']} ({reason(test)})")
    for test in failed:
        print(f"failed: {test['name']} ({test['code'].lower()})")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped", flush=True)
    return 0 if passed and not failed and status == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
