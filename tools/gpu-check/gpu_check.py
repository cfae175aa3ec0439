"""gpu_check prepare [OUT]   compiles the bundles to check, without weights, into OUT (default build/gpu-check)
gpu_check run [OUT]       checks them on the GPU: prints one line a check, then the number passed and failed"""
import argparse
import concurrent.futures
import os
import re
import sys
import tempfile
import time

import cases
from checks import BundleCheck, Result
from golden import Golden
from machine import Failure, Machine
from prepare import prepare
from resident import check_resident
from sanitize import TOOLS, check_sanitized
from wide import WideCheck

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="gpu_check.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("prepare", "run"))
    parser.add_argument("out", nargs="?", default=os.path.join(ROOT, "build", "gpu-check"), metavar="OUT")
    parser.add_argument("--models", default=os.path.join(ROOT, "test", "models"), metavar="DIR", help="the checkpoints")
    parser.add_argument("--only", default="", metavar="REGEX", help="only bundles whose name matches")
    parser.add_argument("--jobs", type=int, metavar="N", help="at a time (default: prepare 2, run 6)")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"), metavar="DIR",
                        help="prepare: where grokc and grokrun are")
    parser.add_argument("--device", default="cuda:0", metavar="D", help="run: cuda:N, or cpu for a dry run")
    parser.add_argument("--work", metavar="DIR", help="run: for packed bundles and the log (default: a temporary one)")
    parser.add_argument("--seconds", type=int, default=240, metavar="N", help="run: start nothing after this time")
    parser.add_argument("--sanitize", choices=(*TOOLS, "all"), metavar="TOOL",
                        help=f"run: only short generations under compute-sanitizer: {', '.join(TOOLS)}, or all of them")
    parser.add_argument("--tool-seconds", type=int, default=150, metavar="N",
                        help="run --sanitize: a tool's time; what is left then is skipped")
    return parser.parse_args()


def compare_variants(checks):
    """Options that must not change a bit: policy and unreachable experts."""
    digests = {check.case: check.digest for check in checks}
    results = []
    for case, digest in digests.items():
        if case.variant not in ("group", "keep") or case.base not in digests:
            continue
        if digest is None or digests[case.base] is None:
            results.append(Result(f"{case.name} as without", "no identity to compare", "bitwise", False))
            continue
        same = digest == digests[case.base]
        results.append(Result(f"{case.name} as without", "equal" if same else "different", "bitwise", same))
    return results


def run_checks(machine, args, selected):
    goldens = {model: Golden(os.path.join(args.models, model)) for model in {case.model for case in selected if not case.wide}}
    end = time.monotonic() + args.seconds

    def check(case):
        work = (WideCheck(machine, args.out, case) if case.wide else
                BundleCheck(machine, args.out, args.models, case, goldens[case.model]))
        if time.monotonic() > end:
            work.report("all", f"not run: {args.seconds} s are over", "", False)
            return work
        return work.run()

    with concurrent.futures.ThreadPoolExecutor(args.jobs or 6) as pool:
        checks = list(pool.map(check, selected))
    results = [result for check in checks for result in check.results] + compare_variants(checks)
    return results + (check_resident(machine, args, selected) if args.device != "cpu" else [])


def print_table(results, out):
    words = {True: "ok", False: "FAIL", None: "-"}
    for r in sorted(results, key=lambda r: r.ok is False):  # failures last, near the count
        print(f"{r.what:<40} {r.value:<22} {r.limit:<7} {words[r.ok]}".rstrip(), file=out)
    passed, failed = (sum(r.ok is ok for r in results) for ok in (True, False))
    print(f"{passed} passed, {failed} failed", file=out)
    return failed == 0 and passed > 0


def run(args, selected):
    work = args.work or tempfile.mkdtemp(prefix="gpu-check-")
    machine = Machine(os.path.join(args.out, "grokrun"), args.device, work)
    begin = time.monotonic()
    if args.device != "cpu":
        try:
            machine.write_log(machine.call("probe", "--device", args.device))
        except Failure as failure:
            sys.exit(f"error: {failure}")
    results = check_sanitized(machine, args, selected) if args.sanitize else run_checks(machine, args, selected)
    with open(os.path.join(work, "table.txt"), "w") as file:
        print_table(results, file)
    print(f"{len(selected)} bundles in {time.monotonic() - begin:.0f} s; log: {work}/log.txt")
    return 0 if print_table(results, sys.stdout) else 1


def main():
    args = parse_arguments()
    selected = [case for case in cases.all_cases() if re.search(args.only, case.name)]
    if not selected:
        sys.exit(f"error: --only: found no bundle that matches '{args.only}'")
    if args.command == "prepare":
        return prepare(args.out, args.bin, args.models, ROOT, selected, args.jobs or 2)
    selected = [case for case in selected if os.path.exists(os.path.join(args.out, case.archive))]
    if not selected:
        sys.exit(f"error: {args.out}: found none of the bundles; run gpu_check.sh prepare first")
    return run(args, selected)


if __name__ == "__main__":
    sys.exit(main())
