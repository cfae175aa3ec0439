"""Runs a command on a directory, and on none, with an escape sequence in the name: COMMAND... DIRECTORY."""
import os
import subprocess
import sys

*command, source = sys.argv[1:]
os.rename(source, "\x1b[2J" + source)
for place in (source, "absent"):
    done = subprocess.run([*command, "\x1b[2J" + place], capture_output=True, text=True)
    print(done.stdout + done.stderr)
    if "\x1b" in done.stdout + done.stderr:
        sys.exit("found a control character in the output")
print("no control characters")
