"""Reference results of the test models, and tensors of safetensors files."""
import array
import json
import math
import os
import struct


class Tensors:
    """The tensors of a safetensors file, by name; float32 and int32 only."""

    def __init__(self, path):
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            self.entries = json.loads(file.read(length))
            self.data = file.read()
        self.entries.pop("__metadata__", None)

    def bytes(self, name):
        begin, end = self.entries[name]["data_offsets"]
        return self.data[begin:end]

    def values(self, name):
        values = array.array({"F32": "f", "I32": "i"}[self.entries[name]["dtype"]])
        values.frombytes(self.bytes(name))
        return values

    def rows(self, name):
        width = self.entries[name]["shape"][1]
        values = self.values(name)
        return [values[i:i + width] for i in range(0, len(values), width)]


def relative_error(value, reference):
    """||value - reference|| / ||reference||; infinite if a value is not a number."""
    difference = math.sqrt(sum((a - b) ** 2 for a, b in zip(value, reference)))
    error = difference / math.sqrt(sum(b * b for b in reference))
    return error if math.isfinite(error) else math.inf


def largest_error(value, reference):
    return max(abs(a - b) if math.isfinite(a) else math.inf for a, b in zip(value, reference))


class Golden:
    """`logits`: pairs (ids, {position: logits}). Of a trained model also prompts, greedy continuations and a loss."""

    def __init__(self, model_dir):
        tensors = Tensors(os.path.join(model_dir, "golden.safetensors"))
        self.cases, self.loss, self.held_out = [], None, None
        path = os.path.join(model_dir, "golden.json")
        if not os.path.exists(path):
            self.logits = [(tensors.values("ids").tolist(), dict(enumerate(tensors.rows("logits"))))]
            return
        with open(path) as file:
            text = json.load(file)
        self.cases = text["cases"]
        self.loss = text["held_out_nll_per_token"]
        self.held_out = text["held_out_ids"]
        self.logits = []
        for i in range(len(self.cases)):
            every = {16 * row: logits for row, logits in enumerate(tensors.rows(f"logits.{i}"))}
            self.logits.append((tensors.values(f"ids.{i}").tolist(), every))
