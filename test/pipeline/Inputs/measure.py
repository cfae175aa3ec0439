"""measure.py SECONDS MIB COMMAND...: runs the command and fails if it does, or takes more time or memory."""
import resource
import subprocess
import sys
import time

seconds, mib = float(sys.argv[1]), float(sys.argv[2])
start = time.monotonic()
code = subprocess.call(sys.argv[3:])
took = time.monotonic() - start
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(f"{took:.1f} s, {peak:.0f} MiB")
if code:
    sys.exit(code)
if took > seconds or peak > mib:
    sys.exit(f"expected at most {seconds:g} s and {mib:g} MiB")
