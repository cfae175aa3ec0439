"""Runs a command with descriptors closed: closed.py FD,FD... COMMAND..."""
import os
import sys

for descriptor in sys.argv[1].split(","):
    os.close(int(descriptor))
os.execvp(sys.argv[2], sys.argv[2:])
