"""socketfile.py GROKRUN BUNDLE: what may lie where a server wants its socket."""
import os
import signal
import stat
import subprocess
import sys

from serving import Client, Server

grokrun, bundle = sys.argv[1:]


def refused(server, path=None):
    command = [path if word == server.path and path is not None else word for word in server.command]
    done = subprocess.run(command, capture_output=True, text=True)
    print("status", done.returncode, done.stderr.replace(server.directory, "DIR"), end="")


server = Server(grokrun, bundle)
with server:
    print("permissions", oct(stat.S_IMODE(os.stat(server.path).st_mode)))
    refused(server)
    assert Client(server).ask(ids=[1], max_new_tokens=1)["event"] == "done"
    # Killed: the file stays, and the next server takes its place.
    server.stop(signal.SIGKILL)
    assert os.path.exists(server.path)
    old = os.umask(0o077)
    server.command += ["--permissions", "660"]
    server.start()
    os.umask(old)
    print("permissions", oct(stat.S_IMODE(os.stat(server.path).st_mode)))
    assert Client(server).ask(ids=[1], max_new_tokens=1)["event"] == "done"
    # Moved away: it is not ours to remove what lies there now.
    os.rename(server.path, server.path + "2")
    open(server.path, "w").close()
    print("status", server.stop()[0])
    refused(server)
    os.remove(server.path)
    os.remove(server.path + "2")
    refused(server, "x" * 108)
    refused(server, "")
    refused(server, server.directory + "/absent/s")
    server.command[-1] = "778"
    refused(server)
