"""Sends a command a signal once a file is there: interrupted.py SIGNAL... FILE -- COMMAND..., once for each signal. Prints what the
command died of and what the file says then, and removes the file."""
import os
import resource
import signal
import subprocess
import sys
import time

split = sys.argv.index("--")
*signals, file = sys.argv[1:split]
for number in (signal.Signals[name] for name in signals):

    def heed():
        signal.signal(number, signal.SIG_DFL)  # what a shell starts in the background ignores SIGINT, Python SIGPIPE
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen(sys.argv[split + 1:], stdout=subprocess.DEVNULL, preexec_fn=heed)
    while process.poll() is None and not os.path.exists(file):
        time.sleep(0.01)
    time.sleep(0.2)  # somewhere among the requests
    process.send_signal(number)
    code = process.wait(timeout=60)
    says = ", ".join(open(file, encoding="utf-8").read().splitlines())
    print("died of", number.name if code == -number else f"nothing: exit status {code}", "after", says)
    os.remove(file)
