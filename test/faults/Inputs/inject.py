"""inject.py LIBRARY CALL ERROR [--after NAME] [--most N | --last N] [--output PATH --verify PROGRAM] [--prepare COMMAND] [--varies REGEX] -- COMMAND...

Runs COMMAND with its 1st, 2nd, 3rd, ... call of CALL failing with ERROR (a name as ENOSPC, or `short`: every read or
write moves only a part); at most N of them, spread over all, or the last N. A run may succeed, if the call did not matter, with the
same standard output as without a fault; or fail with status 1 and a line that begins with "error: ". It never crashes,
hangs or says that it is our mistake; what it leaves at PATH passes PROGRAM verify or is not there, and nothing is left
beside it. --prepare is run by the shell before each. What REGEX matches in the output differs from run to run. Prints what it
did."""
import argparse
import errno
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

SECONDS = 60


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("call")
    parser.add_argument("error")
    parser.add_argument("--after", default=".grok")
    parser.add_argument("--most", type=int, default=20)
    parser.add_argument("--last", type=int)
    parser.add_argument("--output")
    parser.add_argument("--verify")
    parser.add_argument("--prepare")
    parser.add_argument("--varies", default="(?!)")
    parser.add_argument("command", nargs="+")
    return parser.parse_args()


def run(args, **settings):
    if args.prepare:
        subprocess.run(args.prepare, shell=True, check=True)
    environment = {**os.environ, "LD_PRELOAD": args.library, "GROK_FAULTS_AFTER": args.after, **settings}
    done = subprocess.run(args.command, env=environment, capture_output=True, text=True, timeout=SECONDS)
    done.stdout = re.sub(args.varies, "", done.stdout)
    return done


def count_calls(args):
    """How often the program makes the call, and what it prints."""
    with tempfile.NamedTemporaryFile("r") as counts:
        done = run(args, GROK_FAULTS_COUNT=counts.name)
        if done.returncode != 0:
            sys.exit(f"error: fails without a fault: {done.stderr}")
        return dict(line.split() for line in counts.read().splitlines())[args.call], done.stdout


def chosen(total, most, last):
    if last:
        return list(range(max(1, total - last + 1), total + 1))
    if total <= most:
        return list(range(1, total + 1))
    return sorted({1 + i * (total - 1) // (most - 1) for i in range(most)})


def check(args, what, done, expected):
    """Ends the program if the fault did harm; whether the run succeeded."""
    def fail(problem):
        sys.exit(f"{what}: {problem}\nstatus {done.returncode}\n{done.stdout}{done.stderr}")

    if done.returncode not in (0, 1):
        fail("expected status 0 or 1")
    if done.returncode == 1 and "error: " not in done.stderr:
        fail("expected a line that begins with 'error: '")
    if done.returncode == 0 and done.stdout != expected:
        fail(f"expected the output\n{expected}")
    if args.output:
        if left := glob.glob(glob.escape(args.output) + ".tmp-*"):
            fail(f"left {left}")
        if os.path.lexists(args.output) and args.verify:
            verify = subprocess.run([*shlex.split(args.verify), args.output], capture_output=True, text=True)
            if verify.returncode != 0:
                fail(f"left what is not whole: {verify.stderr}")
        elif done.returncode == 0 and not os.path.lexists(args.output):
            fail("left nothing")
    return done.returncode == 0


def main():
    args = parse_arguments()
    total, expected = count_calls(args)
    total = int(total)
    if total == 0:
        sys.exit(f"error: {args.call}: found no call, expected some")
    if args.error == "short":
        done = run(args, GROK_FAULTS=f"{args.call}:0:short")
        if not check(args, f"short {args.call}", done, expected):
            sys.exit(f"short {args.call}: expected success\n{done.stderr}")
        print(f"{args.call} short: the same")
        return
    code = getattr(errno, args.error)
    succeeded = failed = 0
    for n in chosen(total, args.most, args.last):
        what = f"{args.call} {n} of {total}: {args.error}"
        if check(args, what, run(args, GROK_FAULTS=f"{args.call}:{n}:{code}"), expected):
            succeeded += 1
        else:
            failed += 1
    print(f"{args.call} {args.error}: {failed} refused, {succeeded} the same")


if __name__ == "__main__":
    main()
