"""Kills a command once its journal vouches for some of the blob: killed.py OUTPUT COMMAND..."""
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

NOTES = 2
output, command = sys.argv[1], sys.argv[2:]


def notes(pid):
    for path in glob.glob(f"{glob.escape(output)}.tmp-{pid}*/packing"):
        try:
            with open(path, "rb") as file:
                return file.read().count(b"\n") - 1  # the first line is the key
        except OSError:
            pass  # it is done
    return 0


def main():
    for _ in range(20):
        shutil.rmtree(output, ignore_errors=True)
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and notes(process.pid) < NOTES:
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL and not os.path.exists(output):
            return print("there:", *sorted(glob.glob(glob.escape(output) + "*")))
        for left in glob.glob(glob.escape(output) + ".tmp-*"):
            shutil.rmtree(left)
    sys.exit("never killed in time")


main()
