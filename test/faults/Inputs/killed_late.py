"""Ends a command by a signal at each of its last calls of fsync, when all is packed: killed_late.py LIBRARY OUTPUT COMMAND...

Until the journal goes, what is left has it, and the same command takes the blob over as it is. After that the bundle is
put into its place whatever signal comes, but for SIGKILL. Prints "SIGNAL at WHAT: what came of it".
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile

library, output, command = sys.argv[1], sys.argv[2], sys.argv[3:]
BEFORE = {"the manifest": 3, "the journal": 2}  # calls that come after it
WITHOUT_JOURNAL = 1  # the staged directory; then comes the folder that it is in


def run(**settings):
    environment = {**os.environ, "LD_PRELOAD": library, "GROK_FAULTS_AFTER": os.path.basename(output), **settings}
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)


def clean():
    for path in glob.glob(glob.escape(output) + "*"):
        shutil.rmtree(path)


def signalled(number, call):
    clean()
    return run(GROK_FAULTS=f"fsync:{call}:sig{int(number)}").returncode


def left():
    return glob.glob(glob.escape(output) + ".tmp-*")


def written(place):
    return os.stat(os.path.join(place, "weights.blob")).st_mtime_ns


def go_on(number, call):
    if signalled(number, call) != -number or os.path.exists(output):
        return "was not ended"
    place, = left()
    if not os.path.exists(os.path.join(place, "packing")):
        return "left no journal"
    before = written(place)
    said = run()
    if said.returncode != 0 or "going on at" not in said.stderr:
        return f"not gone on with: {said.stderr}"
    return "nothing packed again" if written(output) == before and whole() else "packed again"


def whole():
    return not left() and not os.path.exists(os.path.join(output, "packing"))


with tempfile.NamedTemporaryFile("r") as counts:
    clean()
    run(GROK_FAULTS_COUNT=counts.name)
    total = int(dict(line.split() for line in counts.read().splitlines())["fsync"])
for number in signal.SIGKILL, signal.SIGTERM:
    for what, after in BEFORE.items():
        print(f"{number.name} at {what}: {go_on(number, total - after)}")
signalled(signal.SIGTERM, total - WITHOUT_JOURNAL)
print(f"SIGTERM without the journal: {'in place' if os.path.exists(output) and whole() else 'lost'}")
