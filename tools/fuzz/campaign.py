"""Runs fuzz targets for long, in turn, and says how much each was run and covers.

`run` goes on where an earlier campaign in the same --work folder ended, until every target has had --runs executions or
--minutes are over. `table` prints the counts. `keep` minimises what the campaign found interesting and writes it to
test/fuzz/corpus, one archive a target, from which tests and later campaigns begin. What breaks a rule lies in
WORK/TARGET/found-*.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
FUZZ = f"{ROOT}/test/fuzz"
# Bytes of an input at most: what is larger only repeats.
MAX_BYTES = {"ir": 12000, "manifest": 8000, "zip": 8000, "serve": 1000, "ids": 1000, "histogram": 1000}
USUAL_BYTES = 4096
# Debian's LLVM is not instrumented (test/lit.cfg.py).
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0:malloc_context_size=4:quarantine_size_mb=16"}


class Target:
    def __init__(self, build, work, name):
        self.program, self.name = f"{os.path.abspath(build)}/fuzz/{name}-fuzz", name
        self.work = os.path.join(os.path.abspath(work), name)
        self.corpus = f"{self.work}/corpus"
        os.makedirs(self.corpus, exist_ok=True)
        self.state_file = f"{self.work}/state.json"
        self.state = {"runs": 0, "edges": 0, "of": 0, "slices": 0}
        if os.path.exists(self.state_file):
            with open(self.state_file) as file:
                self.state = json.load(file)

    def options(self):
        options = [f"-max_len={MAX_BYTES.get(self.name, USUAL_BYTES)}", "-timeout=20", f"-artifact_prefix={self.work}/found-"]
        dictionary = f"{FUZZ}/dictionaries/{self.name}.dict"
        return options + ([f"-dict={dictionary}"] if os.path.exists(dictionary) else [])

    def fuzz(self, seconds, runs):
        """One slice; the corpus, the counts and what was found stay."""
        unpack(self.name, self.corpus)
        self.state["slices"] += 1
        command = [self.program, *self.options(), f"-seed={self.state['slices']}", f"-max_total_time={seconds}",
                   f"-runs={runs}", "-print_final_stats=1", self.corpus, f"{FUZZ}/seeds/{self.name}"]
        r = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=self.work,
                           env={**os.environ, **SANITIZER})
        with open(f"{self.work}/last.log", "w") as file:
            file.write(r.stderr)
        executed = re.search(r"stat::number_of_executed_units: (\d+)", r.stderr)
        edges = re.findall(r"cov: (\d+)", r.stderr)
        of = re.search(r"\((\d+) inline 8-bit counters\)", r.stderr)
        self.state["runs"] += int(executed.group(1)) if executed else 0
        self.state["edges"] = max([self.state["edges"], *map(int, edges)])
        self.state["of"] = int(of.group(1)) if of else self.state["of"]
        with open(self.state_file, "w") as file:
            json.dump(self.state, file)

    def found(self):
        return sorted(glob.glob(f"{glob.escape(self.work)}/found-*"))

    def keep(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([self.program, *self.options(), "-merge=1", folder, f"{FUZZ}/seeds/{self.name}", self.corpus],
                           check=True, capture_output=True, env={**os.environ, **SANITIZER})
            seeds = {content(path) for path in glob.glob(f"{FUZZ}/seeds/{self.name}/*")}
            units = sorted({content(path) for path in glob.glob(f"{folder}/*")} - seeds, key=lambda unit: (len(unit), unit))
        os.makedirs(f"{FUZZ}/corpus", exist_ok=True)
        with zipfile.ZipFile(f"{FUZZ}/corpus/{self.name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for number, unit in enumerate(units):  # ZipInfo's date is the same every time
                archive.writestr(zipfile.ZipInfo(f"{number:05}"), unit, zipfile.ZIP_DEFLATED)
        return len(units)


def content(path):
    with open(path, "rb") as file:
        return file.read()


def unpack(name, folder):
    """The corpus in the tree."""
    archive = f"{FUZZ}/corpus/{name}.zip"
    if os.path.exists(archive):
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)


def run(targets, o):
    end = time.monotonic() + o.minutes * 60
    while time.monotonic() < end:
        left = [t for t in targets if t.state["runs"] < o.runs and not (o.stop and t.found())]
        if not left:
            break
        target = min(left, key=lambda t: t.state["slices"])
        target.fuzz(int(max(1, min(o.slice, end - time.monotonic()))), o.runs - target.state["runs"])
        print(f"{target.name}: {target.state['runs']} runs, {target.state['edges']} edges, {len(target.found())} found",
              flush=True)


def table(targets):
    print(f"{'target':14}{'executions':>12}{'edges':>8}{'of':>8}{'corpus':>8}{'found':>7}")
    for t in targets:
        s = t.state
        print(f"{t.name:14}{s['runs']:12}{s['edges']:8}{s['of']:8}{len(os.listdir(t.corpus)):8}{len(t.found()):7}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "keep"))
    parser.add_argument("--build", default=f"{ROOT}/build/fuzz", help="a build with GROK_FUZZ")
    parser.add_argument("--work", default=f"{ROOT}/build/campaign", help="corpora, counts and findings")
    parser.add_argument("--targets", help="names with commas between (default: all that were built)")
    parser.add_argument("--runs", type=int, default=10_000_000, help="executions of each target")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--slice", type=int, default=60, metavar="SECONDS", help="of a target at a time")
    parser.add_argument("--stop", action="store_true", help="leave a target alone once something was found")
    o = parser.parse_args()
    built = sorted(os.path.basename(p)[:-len("-fuzz")] for p in glob.glob(f"{glob.escape(o.build)}/fuzz/*-fuzz"))
    names = o.targets.split(",") if o.targets else built
    missing = set(names) - set(built)
    if missing or not names:
        sys.exit(f"error: found no {', '.join(sorted(missing)) or 'targets'} in {o.build}/fuzz, expected programs; build grok-fuzz")
    targets = [Target(o.build, o.work, name) for name in names]
    if o.what == "run":
        run(targets, o)
    if o.what == "keep":
        for t in targets:
            print(f"{t.name}: {t.keep()} inputs")
    else:
        table(targets)
    return 1 if any(t.found() for t in targets) else 0


if __name__ == "__main__":
    sys.exit(main())
