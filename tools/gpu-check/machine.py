"""Runs grokrun on the device that is checked and keeps a log of it."""
import os
import subprocess
import threading
import time

from golden import Tensors

COMMAND_SECONDS = 120


class Failure(Exception):
    """A command failed; the message says why."""


class Script:
    """Batches of requests for grokrun replay."""

    def __init__(self):
        self.lines, self.rows = [], 0

    def batch(self, *rows):
        """Adds a batch of (ids, number to generate); returns the indices of its rows."""
        self.lines += [",".join(map(str, ids)) + (f" +{count}" if count else "") for ids, count in rows] + [""]
        self.rows += len(rows)
        return range(self.rows - len(rows), self.rows)

    def alone(self, ids, generate=0):
        return self.batch((ids, generate))[0]


class Machine:
    def __init__(self, grokrun, device, work):
        self.grokrun, self.device, self.work = grokrun, device, work
        self.lock = threading.Lock()
        os.makedirs(work, exist_ok=True)
        self.log = open(os.path.join(work, "log.txt"), "w")
        # The driver keeps what it compiled here, so that the programs of one bundle compile it once.
        self.environment = {**os.environ, "CUDA_CACHE_PATH": os.path.join(work, "jit"), "CUDA_CACHE_MAXSIZE": str(1 << 30)}
        for name in ("GROK_KV_CACHE_BUFFER_MB", "GROK_MAX_SEQ_LEN"):
            self.environment.pop(name, None)

    def write_log(self, text):
        with self.lock:
            self.log.write(text + "\n")
            self.log.flush()

    def call(self, *arguments, prefix=(), environment=(), seconds=COMMAND_SECONDS):
        """Standard output (with `prefix`, a program to run grokrun under: standard error too). Failure if it failed."""
        command = [*prefix, self.grokrun, *arguments]
        begin = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                                  env={**self.environment, **dict(environment)})
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            code, out, err = "timeout", "", f"error: no end after {seconds:.0f} s"
        except OSError as error:
            code, out, err = "start", "", f"error: {error}"
        self.write_log(f"$ {' '.join(command)}\n  -> {code} in {time.monotonic() - begin:.2f} s\n{err}"
                       f"{out if prefix else ''}".rstrip())
        if code != 0:
            lines = (err or out).strip().splitlines() or ["no message"]
            message = next((line for line in lines if line.startswith("error: ")), lines[-1])
            raise Failure(f"{message.removeprefix('error: ')} (exit {code})")
        return out + err if prefix else out

    def replay(self, bundle, script, *flags, logits=True, device=None, **how):
        """Runs a script; returns the new ids of every row, and the rows' logits if they are asked for. `how`: for call."""
        stem = f"{bundle}.{'logits' if logits else 'ids'}.{(device or self.device).replace(':', '')}"
        with open(stem + ".requests", "w") as file:
            file.write("\n".join(script.lines))
        arguments = ["replay", bundle, "--requests", stem + ".requests", "--device", device or self.device, *flags]
        if logits:
            arguments += ["-o", stem + ".safetensors"]
        out = self.call(*arguments, **how)
        ids = [[int(i) for i in line[1:-1].split(",") if i] for line in out.splitlines() if line.startswith("[")]
        if not logits:
            return ids, None
        tensors = Tensors(stem + ".safetensors")
        os.remove(stem + ".safetensors")
        return ids, tensors
