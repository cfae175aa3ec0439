"""measure.py SECONDS MIB COMMAND...: runs the command and fails if it does, or takes more processor time or memory."""
import resource
import subprocess
import sys

seconds, mib = float(sys.argv[1]), float(sys.argv[2])
code = subprocess.call(sys.argv[3:])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
took = usage.ru_utime + usage.ru_stime  # whatever else the machine does
peak = usage.ru_maxrss / 1024
print(f"{took:.1f} s, {peak:.0f} MiB")
if code:
    sys.exit(code)
if took > seconds or peak > mib:
    sys.exit(f"expected at most {seconds:g} s and {mib:g} MiB")
