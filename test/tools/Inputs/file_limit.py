"""Runs a command whose files may not be larger than this: file_limit.py BYTES COMMAND..."""
import os
import resource
import signal
import sys

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
os.execv(sys.argv[2], sys.argv[2:])
