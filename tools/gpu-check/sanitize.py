"""`run --sanitize`: short generations under compute-sanitizer, for each PTX path and each kind of routing."""
import os
import shutil
import time

from checks import Result, filler, unpack
from machine import Failure, Script

MODELS = ("hash-offset", "grok2-residual")
TOOLS = ("memcheck", "racecheck", "synccheck")
KERNELS = {"decode": ("--decode-from", "0"), "prefill": ()}  # who computes the prompt
FOUND = 99  # exit status for what the tool found


def tool_path():
    return shutil.which("compute-sanitizer", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))


def script_for(kernel):
    """Two rows of different lengths; prefill makes the only id, decode also goes on from it."""
    script = Script()
    script.batch((filler(300, 3, 1), 2 if kernel == "decode" else 1), (filler(300, 2, 2), 1))
    return script


def check_kernel(machine, args, case, tool, kernel, end):
    seconds = end - time.monotonic()
    what = f"{case.name} {tool} {kernel}"
    if seconds < 1:
        return Result(what, f"skipped: {args.tool_seconds} s of {tool} are over", "", None)
    prefix = [tool_path(), "--tool", tool, "--error-exitcode", str(FOUND)]
    try:
        bundle = unpack(machine, args.out, case, os.path.join(args.models, case.model))
        machine.replay(bundle, script_for(kernel), *KERNELS[kernel], logits=False, prefix=prefix, seconds=seconds)
        return Result(what, "nothing found", "", True)
    except Failure as failure:
        return Result(what, str(failure), "", False)


def check_sanitized(machine, args, selected):
    tools = TOOLS if args.sanitize == "all" else (args.sanitize,)
    if not tool_path():
        return [Result(tool, "skipped: found no compute-sanitizer", "", None) for tool in tools]
    chosen = [case for case in selected if case.model in MODELS and case.dtype == "bf16" and not case.variant
              and case.activations == "single"]
    results = []
    for tool in tools:
        end = time.monotonic() + args.tool_seconds
        results += [check_kernel(machine, args, case, tool, kernel, end) for case in chosen for kernel in KERNELS]
    return results
