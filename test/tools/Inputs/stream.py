"""Reads what a command prints piece by piece: each must be whole characters, and all together what another prints."""
import os
import subprocess
import sys


def main(*command):
    whole = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    process = subprocess.Popen([*command, "--stream"], stdout=subprocess.PIPE)
    pieces = iter(lambda: os.read(process.stdout.fileno(), 65536), b"")
    text = "".join(piece.decode() for piece in pieces)
    if process.wait() or text != whole.decode():
        sys.exit(f"found {text!r}, expected {whole.decode()!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
