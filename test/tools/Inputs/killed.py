"""Ends a command by a signal once its journal vouches for some of the blob: killed.py [--signal NAME] OUTPUT COMMAND...

The signal is SIGKILL unless another is named. Prints what the command said then, and what is there.
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

from journal import notes

NOTES, MOST_NOTES = 2, 3  # with more, all may be packed
number, arguments = signal.SIGKILL, sys.argv[1:]
if arguments[0] == "--signal":
    number, arguments = signal.Signals[arguments[1]], arguments[2:]
output, command = arguments[0], arguments[1:]


def unignore():
    """What a shell starts in the background ignores SIGINT, and the tools leave that so."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)


def main():
    for _ in range(20):
        shutil.rmtree(output, ignore_errors=True)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=unignore)
        while process.poll() is None and notes(output, process.pid) < NOTES:
            time.sleep(0.0005)
        process.send_signal(number)
        errors = process.communicate()[1]
        left = sorted(glob.glob(glob.escape(output) + "*"))
        if process.returncode == -number and left and not os.path.exists(output) and \
                notes(output, process.pid) <= MOST_NOTES:
            print(errors, end="")
            return print("there:", *left)
        for path in left:
            if path != output:
                shutil.rmtree(path)
    sys.exit("never killed in time")


main()
