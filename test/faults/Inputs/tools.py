"""What the tests of this folder share."""
import os
import resource
import subprocess
import sys


def run(*command):
    """(status, last line of the errors, output) of a command that may end with 0 or with 1 and a reason."""
    r = subprocess.run(command, capture_output=True, timeout=120)
    errors = r.stderr.decode(errors="replace")
    last = (errors.splitlines() or [""])[-1]
    if r.returncode not in (0, 1) or (r.returncode == 1 and "error: " not in errors):
        sys.exit(f"{command}: status {r.returncode}: {errors}")
    return r.returncode, last, r.stdout


def ok(*command):
    status, last, output = run(*command)
    if status:
        sys.exit(f"{command}: {last}")
    return output


def refused(*command):
    """The reason."""
    status, last, _ = run(*command)
    if status == 0:
        sys.exit(f"{command}: expected an error")
    return last


def checkpoint(source, folder, *options):
    """A small checkpoint with its config."""
    ok(sys.executable, f"{source}/tools/checkpoints/generate.py", "--layers", "1", "-o", folder, *options)
    return folder


def most_memory():
    """Bytes that a command of this process has taken at most."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def entries(folder):
    return sorted(os.listdir(folder))
