"""Runs a command as one whom the system refuses things: restricted.py WHAT COMMAND...

WHAT is `modes`, where permissions count for root too, or `bytes=N`, where no file may become larger than N.
"""
import ctypes
import os
import resource
import signal
import sys

what, command = sys.argv[1], sys.argv[2:]
if what == "modes":
    if os.geteuid() == 0:
        drop_from_bounding_set, override, read_search = 24, 1, 2
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (override, read_search):
            if libc.prctl(drop_from_bounding_set, capability, 0, 0, 0) != 0:
                sys.exit("prctl: " + os.strerror(ctypes.get_errno()))
else:
    limit = int(what.removeprefix("bytes="))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
os.execv(command[0], command)
