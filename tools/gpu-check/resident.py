"""Requests to `grokrun serve`, with and without a kernel that stays: the answers must be the same ids."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from checks import Result, filler, unpack
from machine import COMMAND_SECONDS, Failure

MODELS = ("hash-offset", "grok2-residual")
DTYPES = ("bf16", "int8")  # with prefill, and without
PAUSE_SECONDS = 2  # in which the kernel waits
LENGTHS, COUNT = (1, 3, 8, 13, 20, 27, 34, 40), 24
END_SECONDS = 10  # from SIGTERM to the end


class Server:
    """`with Server(...)`: listens when the block begins."""

    def __init__(self, machine, bundle, *flags):
        self.directory = tempfile.mkdtemp(prefix="grok")  # an address holds 107 bytes
        self.path = os.path.join(self.directory, "s")
        command = [machine.grokrun, "serve", bundle, "--socket", self.path, "--device", machine.device, *flags]
        machine.write_log(f"$ {' '.join(command)}")
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=machine.environment)

    def __enter__(self):
        line = self.process.stderr.readline()
        if not line.startswith("serving "):
            raise Failure(line.strip().replace("error: ", "") or "grokrun serve said nothing")
        return self

    def __exit__(self, kind, value, trace):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory)

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(COMMAND_SECONDS)
        connection.connect(self.path)
        return connection, connection.makefile("r", encoding="utf-8")

    def ask(self, requests):
        """The ids of requests that are sent together."""
        connection, lines = self.connect()
        for i, request in enumerate(requests):
            connection.sendall(json.dumps({"id": i, **request}).encode() + b"\n")
        ids = {}
        while len(ids) < len(requests):
            answer = json.loads(lines.readline() or '{"event": "error", "message": "the server closed the connection"}')
            if answer["event"] == "error":
                raise Failure(answer["message"])
            if answer["event"] == "done":
                ids[answer["id"]] = answer["ids"]
        connection.close()
        return [ids[i] for i in range(len(requests))]

    def cancel(self, request):
        """Goes after the first ids of a request."""
        connection, lines = self.connect()
        connection.sendall(json.dumps({**request, "stream": True}).encode() + b"\n")
        lines.readline()
        lines.close()
        connection.close()

    def end(self):
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"no end {END_SECONDS} s after SIGTERM") from None


def answers(machine, bundle, requests, *flags):
    """Alone, after a pause, beside one that is cancelled, and together; then the server's exit status."""
    with Server(machine, bundle, *flags) as server:
        alone = [server.ask([request])[0] for request in requests]
        time.sleep(PAUSE_SECONDS if flags else 0)
        alone.append(server.ask(requests[:1])[0])
        server.cancel({**requests[0], "max_new_tokens": 100})
        return alone, server.ask(requests), server.end()


def check_case(machine, args, case):
    what = f"{case.name} resident"
    try:
        weights = os.path.join(args.models, case.model)
        bundle = unpack(machine, args.out, case, weights, case.name + "-resident")
        with open(os.path.join(weights, "config.json")) as file:
            vocab = json.load(file)["vocab_size"]
        requests = [{"ids": filler(vocab, length, 7), "max_new_tokens": COUNT, "ignore_eos": True,
                     "temperature": i % 3 * 0.5, "seed": 5} for i, length in enumerate(LENGTHS)]
        launched, stayed = (answers(machine, bundle, requests, *flags) for flags in ((), ("--resident",)))
        different = [f"request {i}" for i, (a, b) in enumerate(zip(launched[0], stayed[0])) if a != b]
        different += [f"request {i} of 8" for i, (a, b) in enumerate(zip(launched[1], stayed[1])) if a != b]
        different += [f"exit {stayed[2]}"] if stayed[2] != 0 else []
        return Result(what, "different: " + ", ".join(different) if different else "equal", "ids", not different)
    except Failure as failure:
        return Result(what, str(failure), "", False)


def check_resident(machine, args, selected):
    """One bundle after the other, alone: a kernel that stays has the device."""
    return [check_case(machine, args, case) for case in selected
            if case.model in MODELS and case.dtype in DTYPES and case.activations == "single" and not case.variant]
