"""Cuts a file off while a command reads it, once the command has written its first output or file: FILE WAIT COMMAND...

WAIT is `output`, or a pattern of files of which one must be there.
"""
import glob
import os
import signal
import subprocess
import sys
import time

file, wait, command = sys.argv[1], sys.argv[2], sys.argv[3:]
process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
if wait == "output":
    os.read(process.stdout.fileno(), 1)
else:
    while process.poll() is None and not glob.glob(wait):
        time.sleep(0.001)
process.send_signal(signal.SIGSTOP)
os.truncate(file, 0)
process.send_signal(signal.SIGCONT)
_, errors = process.communicate(timeout=120)
sys.stderr.buffer.write(errors)
print("status", process.returncode)
