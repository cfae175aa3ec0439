"""A server of a test, and clients of it. The socket lies in a short path of its own: an address holds 107 bytes."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time


class Server:
    """`with Server(grokrun, bundle, flags...)`: listens when the block begins; stopped, and checked, when it ends."""

    def __init__(self, grokrun, bundle, *flags, device="cpu"):
        self.directory = tempfile.mkdtemp(prefix="grok")
        self.path = os.path.join(self.directory, "s")
        self.command = [grokrun, "serve", bundle, "--socket", self.path, "--device", device, *flags]
        self.process = None

    def start(self):
        # Whoever runs the tests may ignore it, and so would the server.
        def heed():
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
        line = self.process.stderr.readline()  # it listens when it says so
        assert line.startswith("serving "), line + self.process.stderr.read()

    def stop(self, number=signal.SIGTERM):
        """Sends the signal; the exit status and what was said."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        said = self.process.stderr.read()
        return self.process.wait(), said

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            status, said = self.stop()
            assert kind or (status == 0 and not said), (status, said)
        shutil.rmtree(self.directory)


class Client:
    def __init__(self, server):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(server.path)
        self.file = self.socket.makefile("r", encoding="utf-8")

    def send(self, **request):
        self.socket.sendall(json.dumps(request).encode() + b"\n")

    def receive(self):
        """The next line's object; None at the end."""
        line = self.file.readline()
        return json.loads(line) if line else None

    def ask(self, **request):
        """The last line of a request that is alone."""
        self.send(**request)
        answer = self.receive()
        while answer["event"] == "tokens":
            answer = self.receive()
        return answer

    def close(self):
        self.file.close()
        self.socket.close()


def generate(grokrun, bundle, ids, count, device="cpu"):
    """What `grokrun generate` gives."""
    command = [grokrun, "generate", bundle, "--device", device, "--ids", ",".join(map(str, ids)), "-n", str(count), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["ids"]


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"found no {what} within {seconds} s"
        time.sleep(0.005)
