"""PyTorch's .bin: a ZIP archive of a pickle and of raw storages."""
import collections
import io
import os
import pickle
import struct
import zlib

import fakemodules
import safetensors

STORAGES = {"bf16": "BFloat16Storage", "f16": "HalfStorage", "f32": "FloatStorage"}
ALIGNMENT = 64
TORCH = fakemodules.module("torch", **{name: type(name, (), {}) for name in STORAGES.values()})
UTILS = fakemodules.module("torch._utils", _rebuild_tensor_v2=fakemodules.new_function())


class Storage:
    def __init__(self, kind, key, elements):
        self.id = ("storage", kind, key, "cpu", elements)


class Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.id if isinstance(obj, Storage) else None


def transposed(data, shape, width):
    rows, columns = shape
    return b"".join(data[(r * columns + c) * width:][:width] for c in range(columns) for r in range(rows))


def archive(tensors, store, options):
    """`tensors`: name to (shape, bytes). The archive's entries, name to bytes."""
    width, views = 4 if store == "f32" else 2, {}
    for name, (shape, data) in tensors.items():
        strides = (shape[1], 1) if len(shape) == 2 else (1,)
        if options.transposed and len(shape) == 2:
            data, strides = transposed(data, shape, width), (1, shape[0])
        views[name] = shape, strides, data
    return archive_of_views(views, store)


def archive_of_views(views, store):
    """`views`: name to (shape, strides, bytes of the storage)."""
    entries, state, width = {}, collections.OrderedDict(), 4 if store == "f32" else 2
    for number, (name, (shape, strides, data)) in enumerate(views.items()):
        entries[f"data/{number}"] = data
        storage = Storage(getattr(TORCH, STORAGES[store]), str(number), len(data) // width)
        state[name] = fakemodules.Call(UTILS._rebuild_tensor_v2,
                                       (storage, 0, tuple(shape), strides, False, collections.OrderedDict()))
    state._metadata = collections.OrderedDict({"": {"version": 1}})
    out = io.BytesIO()
    Pickler(out, protocol=2).dump(state)
    return {"data.pkl": out.getvalue(), "byteorder": b"little", **entries, "version": b"3\n"}


def zip_bytes(entries, zip64=False, folder="archive"):
    """Stored entries, aligned as PyTorch aligns them, with their sizes behind the content."""
    out, directory = bytearray(), bytearray()
    for name, data in entries.items():
        full = f"{folder}/{name}".encode()
        at, crc = len(out), zlib.crc32(data)
        pad = -(at + 30 + len(full) + 4) % ALIGNMENT
        extra = struct.pack("<HH", 0x4246, pad) + b"Z" * pad
        out += struct.pack("<IHHHHHIIIHH", 0x04034B50, 0, 0x0808, 0, 0, 0, 0, 0, 0, len(full), len(extra))
        out += full + extra + data
        out += struct.pack("<IIQQ", 0x08074B50, crc, len(data), len(data)) if zip64 else \
            struct.pack("<IIII", 0x08074B50, crc, len(data), len(data))
        wide = struct.pack("<HHQQQ", 1, 24, len(data), len(data), at) if zip64 else b""
        sizes = (0xFFFFFFFF,) * 3 if zip64 else (len(data), len(data), at)
        directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 0, 0, 0x0808, 0, 0, 0, crc, sizes[0], sizes[1],
                                 len(full), len(wide), 0, 0, 0, 0, sizes[2])
        directory += full + wide
    start, count = len(out), len(entries)
    out += directory
    if zip64:
        record = len(out)
        out += struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count, len(directory), start)
        out += struct.pack("<IIQI", 0x07064B50, 0, record, 1)
        out += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    else:
        out += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(directory), start, 0)
    return bytes(out)


def write_file(path, tensors, store, options):
    with open(path, "wb") as file:
        file.write(zip_bytes(archive(tensors, store, options), options.zip64))


def write_single(model, options):
    write_file(os.path.join(options.output, "pytorch_model.bin"), safetensors.contents(model, options.store),
               options.store, options)


def write_sharded(model, options):
    tensors = safetensors.contents(model, options.store)
    shards, names = safetensors.shards_of(tensors), {}
    for i, shard in enumerate(shards):
        name = f"pytorch_model-{i + 1:05}-of-{len(shards):05}.bin"
        names[name] = list(shard)
        write_file(os.path.join(options.output, name), shard, options.store, options)
    safetensors.write_index(os.path.join(options.output, "pytorch_model.bin.index.json"), names,
                            sum(len(data) for _, data in tensors.values()))
