"""A GGUF file that stores a head beside a tied one, with other values: tied_head.py GROKC DIR"""
import sys

import faults
import gguf_faults

SHAPE, TYPE, DATA = gguf_faults.TENSORS["token_embd.weight"]
CASES = {"other": gguf_faults.tensors({"output.weight": (SHAPE, TYPE, bytes(DATA[:-1]) + bytes([DATA[-1] ^ 1]))})}

if __name__ == "__main__":
    faults.run(sys.argv[1], sys.argv[2], CASES)
