"""Compiles tensors that PyTorch saved with metadata that says nothing, and without any, and compares the weights: GROKC."""
import collections
import filecmp
import io
import os
import pickle
import subprocess
import sys

import faults  # puts the generator on the path
import torch_faults
import torchfile


class Rebuilt(pickle.Unpickler):
    """The good state dict, each tensor as its arguments."""

    def persistent_load(self, key):
        return torchfile.Storage(*key[1:3], key[4])

    def find_class(self, module, name):
        if name == "_rebuild_tensor_v2":
            return lambda *arguments: arguments
        return collections.OrderedDict if name == "OrderedDict" else getattr(torchfile.TORCH, name)


def compiled(folder, *metadata):
    tensors = Rebuilt(io.BytesIO(torch_faults.GOOD["data.pkl"])).load()
    state = {name: torchfile.fakemodules.Call(torchfile.UTILS._rebuild_tensor_v2, arguments + metadata)
             for name, arguments in tensors.items()}
    out = io.BytesIO()
    torchfile.Pickler(out, protocol=2).dump(state)
    os.mkdir(folder)
    torch_faults.pickled(out.getvalue())(folder)
    bundle = os.path.join(folder, "out.grok")
    subprocess.run([sys.argv[1], "compile", "--config", folder, "--target", "cpu", "-o", bundle], check=True,
                   stderr=subprocess.DEVNULL)
    return os.path.join(bundle, "weights.blob")


without = compiled("without")
for folder, metadata in {"with-none": None, "with-dict": {}, "with-ordered-dict": collections.OrderedDict()}.items():
    if not filecmp.cmp(without, compiled(folder, metadata), shallow=False):
        sys.exit(f"{folder}: another blob than without metadata")
