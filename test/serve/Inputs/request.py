"""request.py GROKRUN BUNDLE [ARGUMENT...] -- [ARGUMENT...] -- ...: one server, and `grokrun request` with each list of
arguments; prints what it prints."""
import subprocess
import sys

from serving import Server

grokrun, bundle, *rest = sys.argv[1:]
lists = [[]]
for word in rest:
    if word == "--":
        lists.append([])
    else:
        lists[-1].append(word)
with Server(grokrun, bundle) as server:
    for arguments in lists:
        done = subprocess.run([grokrun, "request", "--socket", server.path, *arguments], capture_output=True)
        text = (done.stdout + done.stderr).decode(errors="backslashreplace").replace(server.directory, "DIR")
        print(f"[{done.returncode}] {text}", end="")
done = subprocess.run([grokrun, "request", "--socket", server.path, "--ids", "1"], capture_output=True, text=True)
print(f"[{done.returncode}] {done.stderr.replace(server.directory, 'DIR')}", end="")
