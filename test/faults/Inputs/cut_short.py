"""Cuts a file off while a command reads it: FILE WHEN COMMAND...

WHEN is `mapped`, when the command has the file in its memory, or `begun:OUTPUT` or `noted:OUTPUT`, when it packs a bundle, and
its journal has no note or one to the end. A command that was not caught then is run again.
"""
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tools/Inputs"))
from journal import notes

file, command = sys.argv[1], sys.argv[3:]
when, _, output = sys.argv[2].partition(":")


def as_asked(pid):
    return when == "mapped" or (notes(output, pid) > 0) == (when == "noted")


def arrived(pid):
    if when == "mapped":
        with open(f"/proc/{pid}/maps") as maps:
            return os.path.realpath(file) in maps.read()
    return glob.glob(f"{glob.escape(output)}.tmp-{pid}*/weights.blob") and as_asked(pid)


def clean():
    for path in glob.glob(f"{glob.escape(output)}*") if output else []:
        shutil.rmtree(path)


def caught():
    """The command, stopped at the time; None if it was missed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not arrived(process.pid):
        time.sleep(0.0005)
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    if process.poll() is None and arrived(process.pid):
        return process
    process.kill()
    process.communicate()
    clean()
    return None


with open(file, "rb") as whole:
    content = whole.read()
for _ in range(20):
    if process := caught():
        os.truncate(file, 0)
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=120)
        if not as_asked(process.pid):  # a note came while it ended
            clean()
            with open(file, "wb") as again:
                again.write(content)
            continue
        print(errors.decode(errors="replace"), "status", process.returncode)
        break
else:
    sys.exit("never caught in time")
