"""Ends a command by a signal once its journal vouches for a part of the blob: killed.py [--signal NAME] LIBRARY OUTPUT COMMAND...

LIBRARY is the one of faults, which sends the signal before the second note. It is SIGKILL unless another is named. A command
that wrote one note only, as it hashed more slowly than it packed, is run again. Prints what the command said, and what is there.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys

WRITE = 3  # the first is the journal's key
number, arguments = signal.SIGKILL, sys.argv[1:]
if arguments[0] == "--signal":
    number, arguments = signal.Signals[arguments[1]], arguments[2:]
library, output, command = arguments[0], arguments[1], arguments[2:]


def unignore():
    """What a shell starts in the background ignores SIGINT, and the tools leave that so."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)


def killed():
    shutil.rmtree(output, ignore_errors=True)
    environment = {**os.environ, "LD_PRELOAD": library, "GROK_FAULTS_AFTER": "/packing", "GROK_FAULTS_IN": "/packing",
                   "GROK_FAULTS": f"write:{WRITE}:sig{int(number)}"}
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=unignore)


for _ in range(20):
    if (done := killed()).returncode != 0:
        break
if done.returncode != -number or os.path.exists(output):
    sys.exit(f"status {done.returncode}, expected {number.name}\n{done.stderr}")
print(done.stderr, end="")
print("there:", *sorted(glob.glob(glob.escape(output) + "*")))
