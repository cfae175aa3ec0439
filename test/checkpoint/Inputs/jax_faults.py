"""Directories of xAI's layout that must be refused."""
import array
import os
import pickle
import sys

import faults  # puts the generator on the path
import ckpt0
import fakemodules
import generate
import model

OPTIONS = generate.parse(["--layout", "ckpt-0", "--grid", "int8", "-o", "unused"])
MODEL = model.Model(OPTIONS)
EMBEDDING, GATE, WO, QUERY, NORM = 0, 2, 6, 7, 9


def file(place, index):
    return os.path.join(place, f"tensor{index:05}_000")


def changed(index, data=None, name=None):
    """The good directory with one file gone, renamed, added or of other bytes."""
    def fill(place):
        ckpt0.write(MODEL, OPTIONS)
        made = os.path.join(OPTIONS.output, "ckpt-0")
        MODEL.write_config(os.path.join(place, "config.json"))
        for entry in os.listdir(made):
            os.rename(os.path.join(made, entry), os.path.join(place, entry))
        if name:
            os.rename(file(place, index), os.path.join(place, name))
        elif data is None:
            os.remove(file(place, index))
        else:
            new = data
            if callable(data):
                with open(file(place, index), "rb") as old:
                    new = data(old.read())
            with open(file(place, index), "wb") as out:
                out.write(new)
    return fill


def quantised(weight_shape, scales_shape, kind=None):
    ints = b"\1" * product(weight_shape)
    scales = numpy_bytes(scales_shape, 2 if kind is None else 4)
    return pickle.dumps(ckpt0.QuantizedWeight8bit(
        ckpt0.numpy_array("i1", weight_shape, ints),
        ckpt0.numpy_array(kind or ckpt0.ML_DTYPES.bfloat16, scales_shape, scales)), protocol=4)


def product(shape):
    out = 1
    for size in shape:
        out *= size
    return out


def numpy_bytes(shape, size):
    return b"\0" * (product(shape) * size)


def plain(kind, shape, data, fortran=False):
    value = ckpt0.numpy_array(kind, shape, data)
    function, arguments, state = value.reduced
    value.reduced = (function, arguments, state[:3] + (fortran,) + state[4:])
    return pickle.dumps(value, protocol=4)


def by_protocol_5(module):
    """What NumPy's arrays reduce to from protocol 5 on."""
    function = fakemodules.module(module, _frombuffer=fakemodules.new_function())._frombuffer
    return pickle.dumps(fakemodules.Call(function, (bytearray(FLOATS), ckpt0.NUMPY.dtype, (32,), "C")), protocol=5)


class Command:
    def __reduce__(self):
        return os.system, ("touch pwned",)


FLOATS = array.array("f", [1.0] * 32).tobytes()
CASES = {
    "missing": changed(5),
    "missing-last": changed(25),
    "one-more": changed(26, b""),
    "shard": changed(5, name="tensor00005_001"),
    "protocol-2": changed(NORM, pickle.dumps(ckpt0.numpy_array("f4", (32,), FLOATS), protocol=2)),
    "protocol-5": changed(NORM, by_protocol_5("numpy.core.numeric")),
    "protocol-5-numpy-2": changed(NORM, by_protocol_5("numpy._core.numeric")),
    "import": changed(NORM, pickle.dumps(Command(), protocol=4)),
    "cut": changed(GATE, lambda old: old[:-5]),
    "after-the-end": changed(NORM, lambda old: old + b"x"),
    "empty": changed(NORM, b""),
    "no-array": changed(NORM, pickle.dumps((1, 2), protocol=4)),
    "embedding": changed(EMBEDDING, quantised((96, 32), (1, 32))),
    "embedding-blocks": changed(EMBEDDING, quantised((96, 32), (8, 32))),
    "blocks": changed(WO, quantised((64, 32), (5, 32))),
    "one-row-short": changed(WO, quantised((64, 32), (8, 31))),
    "scales-vector": changed(QUERY, quantised((32, 64), (64,))),
    "scales-f32": changed(QUERY, quantised((32, 64), (1, 64), "f4")),
    "not-turned": changed(QUERY, quantised((64, 32), (1, 32))),
    "no-inputs": changed(QUERY, quantised((0, 64), (1, 64))),
    "no-outputs": changed(QUERY, quantised((32, 0), (1, 0))),
    "no-experts": changed(GATE, quantised((0, 32, 64), (0, 1, 64))),
    "experts-of-nothing": changed(GATE, quantised((65535, 0, 0), (65535, 1, 0))),
    "no-scales": changed(QUERY, plain("i1", (32, 64), b"\0" * 2048)),
    "other-type": changed(NORM, plain("f8", (32,), b"\0" * 256)),
    "fortran": changed(NORM, plain("f4", (32,), FLOATS, True)),
    "byte-count": changed(NORM, plain("f4", (33,), FLOATS)),
    "overflow": changed(NORM, plain("f4", (2**62, 2**62), FLOATS)),
    "dimensions": changed(NORM, plain("f4", (32,) + (1,) * 8, FLOATS)),
    "shape": changed(NORM, plain("f4", (16, 2), FLOATS)),
}

if __name__ == "__main__":
    OPTIONS.output = os.path.join(sys.argv[2], "good")
    os.makedirs(OPTIONS.output, exist_ok=True)
    faults.run(sys.argv[1], sys.argv[2], CASES, grokrun=sys.argv[3])
    if os.path.exists("pwned"):
        sys.exit("a pickle's command was run")
