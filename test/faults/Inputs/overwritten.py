"""Changes a byte of a file while a command packs from it, and sets its time back: FILE OUTPUT COMMAND..."""
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[2] / "tools/Inputs"))
from rewrite import rewrite

file, output, command = sys.argv[1], sys.argv[2], sys.argv[3:]


def packing():
    """Whether the blob is begun and not done: then the journal is still there."""
    return all(glob.glob(f"{glob.escape(output)}.tmp-*/{name}") for name in ("weights.blob", "packing"))


def caught():
    """The command, stopped while it packs; None if it was too fast."""
    shutil.rmtree(output, ignore_errors=True)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        if not packing():
            time.sleep(0.0005)
            continue
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if packing():
            return process
        process.send_signal(signal.SIGCONT)
        process.wait()
    return None


for _ in range(20):
    if process := caught():
        rewrite(file)
        process.send_signal(signal.SIGCONT)
        errors = process.communicate()[1]
        print(f"{errors}status {process.returncode}")
        break
else:
    sys.exit("never seen while it packs")
