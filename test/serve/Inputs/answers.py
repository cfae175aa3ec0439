"""answers.py GROKRUN: what `grokrun request` makes of the answers of something that is no server."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

grokrun = sys.argv[1]
directory = tempfile.mkdtemp(prefix="grok")
path = os.path.join(directory, "s")


def ask(what, answer, *flags):
    """Prints the exit status and what was said where the answer to a request is this."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        prompt = () if "--prompt" in flags else ("--ids", "1")
        client = subprocess.Popen([grokrun, "request", "--socket", path, *prompt, *flags], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        connection, _ = listener.accept()
        with connection:
            connection.makefile().readline()
            try:
                connection.sendall(answer)
            except ConnectionError:  # it has read enough
                pass
        said = client.communicate()[0].decode().replace(path, "SOCKET").rstrip("\n")
        print(f"{what}: [{client.returncode}] {said}".rstrip())
    os.unlink(path)


def line(event, **keys):
    return json.dumps({"id": None, "event": event, **keys}).encode() + b"\n"


TEXT = ("--prompt", "x", "--stream")
try:
    ask("ids", line("done", ids=[5, 6]))
    ask("empty", line("done", ids=[]))
    ask("text", line("tokens", ids=[1], text="a") + line("done", ids=[1, 2], text="ab"), *TEXT)
    ask("unknown key", line("done", ids=[5], later=1))
    ask("no JSON", b"HTTP/1.1 400 Bad Request\r\n")
    ask("no object", b"[]\n")
    ask("no event", b"{}\n")
    ask("another event", line("x"))
    ask("tokens unasked", line("tokens", ids=[1]))
    ask("no ids", line("done"))
    ask("ids that are none", line("tokens", ids="x", text="a"), *TEXT)
    ask("an id too large", line("done", ids=[1, 2**31]))
    ask("another request's", line("done", ids=[1]).replace(b"null", b"7"))
    ask("a text that is none", line("tokens", ids=[1], text=5), *TEXT)
    ask("another text", line("tokens", ids=[1], text="ab") + line("done", ids=[1, 2], text="acd"), *TEXT)
    ask("an error without a message", line("error", code="x"))
    ask("an error that a terminal obeys", line("error", code="x\x1b", message="a\x1b[31m\nerror: y\u202e"))
    ask("no end", b"x" * (5 << 20))
    ask("nothing", b"")
finally:
    shutil.rmtree(directory)
