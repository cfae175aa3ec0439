"""Cuts a file off while a command reads it: FILE WAIT COMMAND...

WAIT is `mapped`, when the command has the file in its memory, or a pattern of files of which one must be there.
"""
import glob
import os
import signal
import subprocess
import sys
import time

file, wait, command = sys.argv[1], sys.argv[2], sys.argv[3:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def arrived():
    if wait != "mapped":
        return glob.glob(wait)
    with open(f"/proc/{process.pid}/maps") as maps:
        return os.path.realpath(file) in maps.read()


while process.poll() is None and not arrived():
    time.sleep(0.0005)
process.send_signal(signal.SIGSTOP)
os.truncate(file, 0)
process.send_signal(signal.SIGCONT)
_, errors = process.communicate(timeout=120)
print(errors.decode(errors="replace"), "status", process.returncode)
