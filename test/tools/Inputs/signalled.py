"""Sends a command a signal while it has a temporary.

signalled.py SIGNAL OUTPUT [--from BUNDLE] [--holding FILE] COMMAND... The temporary is seen by polling, and the command
stopped; one that was done by then, or whose journal has a note, is run again. With --from, OUTPUT is a copy of BUNDLE each
time; with --holding, the temporary counts once it has FILE. Prints what the command died of and the names beside OUTPUT that begin with its.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

from journal import notes

number, output, command = signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3:]
original, held = None, ""
if command[0] == "--from":
    original, command = command[1], command[2:]
if command[0] == "--holding":
    held, command = command[1], command[2:]


def temporaries(pid):
    return glob.glob(os.path.join(f"{glob.escape(output)}.tmp-{pid}*", held))


def unignore():
    """What a shell starts in the background ignores SIGINT, and the tools leave that so."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)


def caught():
    """The command, stopped while it has a temporary; None if it was too fast."""
    shutil.rmtree(output, ignore_errors=True)
    if original:
        shutil.copytree(original, output)
    process = subprocess.Popen(command, preexec_fn=unignore)
    while process.poll() is None:
        if not temporaries(process.pid):
            time.sleep(0.001)
            continue
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if temporaries(process.pid):
            return process
        process.send_signal(signal.SIGCONT)
        process.wait()
    return None


for _ in range(20):
    if process := caught():
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        code = process.wait()
        if notes(output, process.pid):
            for path in glob.glob(f"{glob.escape(output)}.tmp-{process.pid}*"):
                shutil.rmtree(path)
        elif code == -number:
            print("died of", number.name)
            break
        elif code != 0:
            sys.exit(f"exit status {code}, expected the signal")
else:
    sys.exit("never seen with a temporary")
names = sorted(os.path.basename(path) for path in glob.glob(glob.escape(output) + "*"))
print("there:", *names or ["nothing"])
