"""PyTorch files that must be refused."""
import collections
import io
import os
import pickle
import struct
import sys

import faults
import generate
import model
import safetensors
import torchfile

OPTIONS = generate.parse(["--layout", "torch", "-o", "unused"])
MODEL = model.Model(OPTIONS)
GOOD = torchfile.archive(safetensors.contents(MODEL, "bf16"), "bf16", OPTIONS)


class Command:
    def __reduce__(self):
        return os.system, ("touch pwned",)


def write(place, data):
    MODEL.write_config(os.path.join(place, "config.json"))
    with open(os.path.join(place, "pytorch_model.bin"), "wb") as file:
        file.write(data)


def archive(**changes):
    """The good archive with other entries; None: without."""
    entries = {**GOOD, **{name.replace("__", "/").replace("_pkl", ".pkl"): data for name, data in changes.items()}}
    data = torchfile.zip_bytes({name: data for name, data in entries.items() if data is not None})
    return lambda place: write(place, data)


def pickled(data):
    return archive(data_pkl=data)


def edited(old, new, count=1):
    data = torchfile.zip_bytes(GOOD)
    if data.count(old) < count:
        sys.exit(f"{old}: not in the file")
    return lambda place: write(place, data.replace(old, new, count))


def one_tensor(*, offset=0, shape=(48, 32), strides=(32, 1), elements=48 * 32, kind="BFloat16Storage", more=(),
               state=None, items=None):
    """A state dict of one tensor, the embedding. `more`: arguments behind those that there are always."""
    storage = torchfile.Storage(getattr(torchfile.TORCH, kind), "0", elements)
    value = torchfile.fakemodules.Call(torchfile.UTILS._rebuild_tensor_v2, (storage, offset, shape, strides, False, {}, *more),
                                       state)
    if items:
        value.reduced = (*value.reduced, None, None, iter(items))
    out = io.BytesIO()
    torchfile.Pickler(out, protocol=2).dump({"model.embed_tokens.weight": value})
    return pickled(out.getvalue())


def directory_edit(position, value, form="<H"):
    """Changes a field of the first entry in the directory, and the same in front of the content."""
    data = bytearray(torchfile.zip_bytes(GOOD))
    start = struct.unpack_from("<I", data, len(data) - 6)[0]
    struct.pack_into(form, data, start + position, value)
    if position == 8:
        struct.pack_into(form, data, 6, value)
    return lambda place: write(place, bytes(data))


def overlapping():
    """The second entry lies where the first does."""
    data = bytearray(torchfile.zip_bytes({"data.pkl": b"x" * 100, "data/aaa": b"y" * 100}))
    inner = torchfile.zip_bytes({"data/aaa": b"y" * 10})
    start = struct.unpack_from("<I", data, len(data) - 6)[0]
    content = data.index(b"x" * 100)
    data[content:content + 90] = inner[:90]
    second = data.index(b"PK\x01\x02", start + 4)
    data[second + 20:second + 28] = struct.pack("<II", 10, 10)
    data[second + 42:second + 46] = struct.pack("<I", content)
    return lambda place: write(place, bytes(data))


EMPTY = pickle.dumps({}, protocol=2)
ZIP = torchfile.zip_bytes(GOOD)
CASES = {
    "import": pickled(pickle.dumps({"model.embed_tokens.weight": Command()}, protocol=2)),
    "import-by-stack": pickled(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93."),
    "opcode": pickled(b"\x80\x02(ios\nsystem\n."),
    "protocol": pickled(b"\x80\x09}."),
    "cut-pickle": pickled(GOOD["data.pkl"][:-1]),
    "after-the-end": pickled(GOOD["data.pkl"] + b"x"),
    "not-remembered": pickled(b"\x80\x02h\x07."),
    "no-mark": pickled(b"\x80\x02t."),
    "two-values": pickled(b"\x80\x02}}."),
    "long-text": pickled(b"\x80\x02X\xff\xff\xff\x7f."),
    "many-remembered": pickled(b"\x80\x02}" + b"".join(b"r" + struct.pack("<I", i) for i in range(2**20 + 1)) + b"."),
    "many-operations": pickled(b"\x80\x02}" + b"q\0" * 2**24 + b"."),
    "long-line": pickled(b"\x80\x02c" + b"x" * 2**17 + b"\ny\n."),
    "long-integer": pickled(b"\x80\x02\x8a\x09" + b"\1" * 9 + b"."),
    "no-dict": pickled(pickle.dumps([1, 2], protocol=2)),
    "no-tensor": pickled(pickle.dumps({"epoch": 3}, protocol=2)),
    "nested": pickled(pickle.dumps({"state_dict": {}}, protocol=2)),
    "no-name": pickled(pickle.dumps({7: 3}, protocol=2)),
    "beyond-storage": one_tensor(offset=1),
    "stride-beyond": one_tensor(strides=(33, 1)),
    "overflow": one_tensor(shape=(2**62, 2**62), strides=(2**62, 2**62)),
    "negative": one_tensor(strides=(-32, 1)),
    "other-rank": one_tensor(strides=(1,)),
    "dimensions": one_tensor(shape=(48, 32) + (1,) * 7, strides=(32,) + (1,) * 8),
    "more-strides": one_tensor(strides=(32,) + (1,) * 8),
    "negated": one_tensor(more=({"neg": True},)),
    "conjugate": one_tensor(more=(collections.OrderedDict(conj=True),)),
    "metadata-number": one_tensor(more=(1,)),
    "more-arguments": one_tensor(more=(None, 1)),
    "attributes": one_tensor(state={"x": 1}),
    "items": one_tensor(items=[(0, 1)]),
    "same-name": pickled(GOOD["data.pkl"].replace(b"experts.0.w1", b"experts.1.w1")),
    "storage-size": one_tensor(elements=48 * 32 + 1),
    "storage-type": one_tensor(kind="FloatStorage"),
    "no-storage": archive(data__0=None),
    "script": archive(constants_pkl=b"x"),
    "big-endian": archive(byteorder=b"big"),
    "byte-order": archive(byteorder=b"little\n"),
    "no-tensors": pickled(EMPTY),
    "no-pickle": archive(data_pkl=None),
    "legacy": lambda place: write(place, pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)),
    "pointer": lambda place: write(place, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
    "empty": lambda place: write(place, b""),
    "cut-file": lambda place: write(place, ZIP[:-1]),
    "compressed": directory_edit(10, 8),
    "encrypted": directory_edit(8, 0x0809),
    "size-differs": directory_edit(24, 5, "<I"),
    "parent": edited(b"archive/version", b"archive/../vers", 2),
    "duplicate": edited(b"archive/data/10", b"archive/data/11", 2),
    "local-name": edited(b"archive/version", b"archive/Version", 1),
    "overlap": overlapping(),
    "outside": edited(b"archive/version", b"another/version", 2),
}

if __name__ == "__main__":
    faults.run(sys.argv[1], sys.argv[2], CASES, grokrun=sys.argv[3])
    if os.path.exists("pwned"):
        sys.exit("a pickle's command was run")
