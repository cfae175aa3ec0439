"""Runs grokrun with every numeric flag and values that it must refuse: GROKRUN BUNDLE."""
import subprocess
import sys

INTEGERS = ["-1", "+1", "0x4", "1e3", "1.0", "1_000", "1'000", " 1", "1 ", "", "x", "4k", "inf",
            "18446744073709551616", "99999999999999999999999"]
REALS = ["-1", "+1", "0x1p3", "1e300", "1e999", "nan", "inf", "", "x", "1,5", "0.5 ", "1e-7", "1e-40", "1e-320", "1e-999",
         "1.1e6", "3e38"]

grokrun, bundle = sys.argv[1:]
GENERATE = ["generate", bundle, "--device", "cpu", "--ids", "1"]
BENCH = ["bench", bundle, "--device", "cpu"]
EVAL = ["eval", bundle, "--device", "cpu", "--ids", "1,2,3"]
for command, flag, values in [
        (GENERATE, "-n", INTEGERS + ["4294967296"]),
        (GENERATE, "--seed", INTEGERS),
        (GENERATE, "--temperature", REALS),
        (BENCH, "--batch", INTEGERS + ["4294967297"]),
        (BENCH, "--context", INTEGERS + ["4294967297"]),
        (BENCH, "--steps", INTEGERS + ["4294967297"]),
        (BENCH, "--seed", INTEGERS),
        (EVAL, "--window", INTEGERS + ["4294967297"])]:
    for value in values:
        r = subprocess.run([grokrun, *command, flag, value], capture_output=True, text=True)
        if r.returncode != 1 or not r.stderr.startswith(f"error: {flag}: found '{value}', expected "):
            sys.exit(f"{command[0]} {flag} '{value}': exit {r.returncode}: {r.stderr}")
print("all refused")
