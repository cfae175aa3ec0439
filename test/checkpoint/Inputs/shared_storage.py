"""shared_storage.py OUT FIRST SECOND --shared|--apart: a .bin whose turned gate and up matrices have the same bytes as elements of two types.

The bytes are one storage, or one of each. The rest is what the generator writes.
"""
import collections
import io
import os
import sys

import faults  # puts the generator on the path
import fakemodules
import generate
import model
import torchfile

out, first, second, way = sys.argv[1:]
made = model.Model(generate.parse(["--layout", "torch", "-o", out]))
entries, state = {}, collections.OrderedDict()


def add(name, shape, kind, data, turned, key=None):
    """Its key; `key`: of a storage that is there."""
    key = key or str(len(entries))
    entries[f"data/{key}"] = data
    strides = (1, shape[0]) if turned else (shape[1], 1) if len(shape) == 2 else (1,)
    storage = torchfile.Storage(getattr(torchfile.TORCH, torchfile.STORAGES[kind]), key, len(data) // (4 if kind == "f32" else 2))
    state[name] = fakemodules.Call(torchfile.UTILS._rebuild_tensor_v2,
                                   (storage, 0, tuple(shape), strides, False, collections.OrderedDict()))
    return key


for name, tensor in made.hf_names().items():
    if ".w1." in name:
        data = torchfile.transposed(tensor.bytes("f32"), tensor.shape, 4)
        key = add(name, tensor.shape, first, data, True)
        add(name.replace("w1", "w3"), tensor.shape, second, data, True, key if way == "--shared" else None)
    elif ".w3." not in name:
        add(name, tensor.shape, "bf16", tensor.bytes("bf16"), False)
os.makedirs(out)
made.write_config(f"{out}/config.json")
pickled = io.BytesIO()
torchfile.Pickler(pickled, protocol=2).dump(state)
with open(f"{out}/pytorch_model.bin", "wb") as file:
    file.write(torchfile.zip_bytes({"data.pkl": pickled.getvalue(), "byteorder": b"little", **entries, "version": b"3\n"}))
