"""Flips bits of 16 bytes at 1 MiB of a file, as a bad disk does."""
import sys

with open(sys.argv[1], "r+b") as file:
    file.seek(1 << 20)
    old = file.read(16)
    file.seek(1 << 20)
    file.write(bytes(byte ^ 0x55 for byte in old))
