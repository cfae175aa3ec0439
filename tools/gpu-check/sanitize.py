"""`run --sanitize`: a short generation under compute-sanitizer, for each PTX path and each kind of routing."""
import os
import shutil

from checks import Result, filler, unpack
from machine import Failure, Script

MODELS = ("hash-offset", "grok2-residual")
FOUND = 99  # exit status for what the tool found


def tool_path():
    return shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


def check_sanitized(machine, args, selected):
    prefix = [tool_path(), "--tool", args.sanitize, "--error-exitcode", str(FOUND)]
    results = []
    for case in selected:
        if case.model not in MODELS or case.dtype != "bf16" or case.variant or case.activations != "single":
            continue
        try:
            bundle = unpack(machine, args.out, case, os.path.join(args.models, case.model))
            script = Script()
            script.batch((filler(300, 3, 1), 2), (filler(300, 2, 2), 1))
            machine.replay(bundle, script, logits=False, prefix=prefix)
            result = ("nothing found", True)
        except Failure as failure:
            result = (str(failure), False)
        results.append(Result(f"{case.name} {args.sanitize}", result[0], "", result[1]))
    return results
