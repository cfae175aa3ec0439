"""Sends a command a signal once a file is there: interrupted.py SIGNAL FILE COMMAND... Prints what it died of."""
import os
import signal
import subprocess
import sys
import time

number, file, command = signal.Signals[sys.argv[1]], sys.argv[2], sys.argv[3:]
# What a shell starts in the background ignores SIGINT, and the tools leave that so.
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
while process.poll() is None and not os.path.exists(file):
    time.sleep(0.01)
time.sleep(0.2)  # somewhere among the requests
process.send_signal(number)
code = process.wait(timeout=60)
print("died of", number.name if code == -number else f"nothing: exit status {code}")
