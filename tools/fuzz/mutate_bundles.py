"""Damages bundles in every way and sees what grokrun makes of them.

Each of the mutated bundles must be refused with a reason or give the right tokens; none may crash or hang, and none may
give other tokens where `grokrun verify` passed it. The same seed makes the same bundles. With --resealed, hashes are made
to fit what was changed, as whoever wants to deceive would do: such a bundle is another one and may give other tokens, but
must not crash or hang either. Prints what became of each kind; ends with status 1, and keeps the bundles, if a rule was
broken.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile

import bundles
import mutations

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


class Broken(Exception):
    """What no bundle may cause."""


def run(seconds, *command):
    try:
        r = subprocess.run(command, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Broken(f"{command[1]} hangs")
    errors = r.stderr.decode(errors="replace")
    if r.returncode not in (0, 1):
        raise Broken(f"{command[1]} ends with status {r.returncode}: {errors[-2000:]}")
    last = (errors.splitlines() or [""])[-1]
    if r.returncode == 1 and not last.startswith("error: "):
        raise Broken(f"{command[1]} gives no reason: {errors!r}")
    return r.stdout if r.returncode == 0 else None


def tokens(o, bundle, prompt):
    """The ids that a bundle generates; None if it is refused."""
    out = run(o.timeout, o.grokrun, "generate", bundle, "--device", "cpu", *prompt, "-n", "12", "--ignore-eos", "--json")
    return None if out is None else json.loads(out)["ids"]


def logits(o, bundle):
    """Of three positions, which tell more than the ids of an untrained model."""
    place = f"{bundle}.logits"
    if run(o.timeout, o.grokrun, "logits", bundle, "--device", "cpu", "--ids", "1,5,9", "-o", place) is None:
        return None
    with open(place, "rb") as file:
        found = file.read()
    os.unlink(place)
    return found


def examine(o, originals, right, scratch, number):
    """Of one mutated bundle: how it was made, what became of it, and what rule that breaks."""
    place = os.path.join(scratch, f"{number}.grok")
    made = mutations.make(f"{o.seed}:{number}", originals, place, o.resealed)
    try:
        passed = run(o.timeout, o.grokrun, "verify", place) is not None
        found = tokens(o, place, made.original.prompt)
        if passed and not o.resealed and found is not None:
            ids, values = right[made.original.path]
            if found != ids:
                raise Broken(f"verify passed it, and it gives {found}, expected {ids}")
            if logits(o, place) != values:
                raise Broken("verify passed it, and it gives other logits")
    except Broken as broken:
        return made, "broken", f"{place}: {made.kind} of {made.original.path}: {made.what}: {broken}"
    bundles.remove(place)
    if o.resealed:
        return made, "refused" if found is None else "runs", None
    return made, "harmless" if passed and found is not None else "refused", None


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=f"{ROOT}/build/release/bin", help="where grokc and grokrun are")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutated bundle")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--resealed", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=float, default=60, help="seconds after which a command hangs")
    parser.add_argument("--scratch", help="an empty folder to work in (default: a temporary one)")
    o = parser.parse_args()
    o.grokrun = f"{o.bin}/grokrun"
    return o


def main():
    o = parse()
    scratch = o.scratch or tempfile.mkdtemp(prefix="mutated-")
    originals = bundles.make(f"{o.bin}/grokc", o.grokrun, os.path.join(scratch, "originals"))
    right = {b.path: (tokens(o, b.path, b.prompt), logits(o, b.path)) for b in originals}
    if any(None in answers for answers in right.values()):
        sys.exit("an original bundle does not run")
    outcomes, broken = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        numbers = range(o.first, o.first + o.count)
        for made, outcome, rule in pool.map(lambda n: examine(o, originals, right, scratch, n), numbers):
            outcomes[made.kind, outcome] += 1
            broken += [rule] if rule else []
    columns = sorted({outcome for _, outcome in outcomes})
    print(f"{'mutation':24}" + "".join(f"{c:>10}" for c in columns))
    for kind in sorted({kind for kind, _ in outcomes}):
        print(f"{kind:24}" + "".join(f"{outcomes[kind, c]:10}" for c in columns))
    print(f"{'all ' + str(o.count):24}" + "".join(f"{sum(n for (_, w), n in outcomes.items() if w == c):10}" for c in columns))
    print("\n".join(broken) or "no rule broken")
    if broken:
        return 1
    if not o.scratch:
        shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
