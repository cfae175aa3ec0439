"""xAI's ckpt-0: a pickle for each tensor, numbered in the order of the parameters' names as text."""
import array
import os
import pickle

import fakemodules
import model as models
import numbers16

SLOTS = ("gate", "down", "up", "key", "attn_out", "query", "value", "pre_attn_norm", "post_attn_norm", "pre_moe_norm",
         "post_moe_norm", "router")


MULTIARRAY = fakemodules.module("numpy.core.multiarray", _reconstruct=fakemodules.new_function())
NUMPY = fakemodules.module("numpy", ndarray=type("ndarray", (), {}), dtype=type("dtype", (), {}))
ML_DTYPES = fakemodules.module("ml_dtypes", bfloat16=type("bfloat16", (), {}))


def numpy_array(kind, shape, data):
    """What NumPy's arrays reduce to. `kind`: 'f4', 'i1', or the class of bf16."""
    order = "|" if kind == "i1" else "<"
    size = 2 if not isinstance(kind, str) else -1
    dtype = fakemodules.Call(NUMPY.dtype, (kind, False, True), (3, order, None, None, None, size, size, 0))
    return fakemodules.Call(MULTIARRAY._reconstruct, (NUMPY.ndarray, (0,), b"b"), (1, shape, dtype, False, data))


class QuantizedWeight8bit:
    def __init__(self, weight, scales):
        self.weight, self.scales = weight, scales


fakemodules.module("__main__", QuantizedWeight8bit=QuantizedWeight8bit)


def turned(values, rows, columns):
    """[out, in] to [in, out]."""
    return [values[r * columns + c] for c in range(columns) for r in range(rows)]


def quantised(tensors):
    """One or several [out, in] tensors; several are stacked."""
    rows, columns = tensors[0].shape
    lead = (len(tensors),) if len(tensors) > 1 else ()
    ints = b"".join(array.array("b", turned(t.ints, rows, columns)).tobytes() for t in tensors)
    scales = b"".join(numbers16.bf16_bits(t.scales).tobytes() for t in tensors)
    return QuantizedWeight8bit(numpy_array("i1", lead + (columns, rows), ints),
                               numpy_array(ML_DTYPES.bfloat16, lead + (tensors[0].blocks, rows), scales))


def plain(tensor, turn):
    values, shape = tensor.values, tensor.shape
    if turn:
        values, shape = turned(values, *shape), shape[::-1]
    return numpy_array("f4", shape, array.array("f", values).tobytes())


def objects(model):
    yield plain(model.tensors["embedding"], False)
    yield plain(model.tensors["final_norm"], False)
    for layer in sorted(str(layer) for layer in range(model.layers)):
        for slot in SLOTS:
            if slot in ("gate", "down", "up"):
                yield quantised([model.tensors[f"{layer}.{e}.{slot}"] for e in range(models.E)])
            elif slot.endswith("norm") or slot == "router":
                yield plain(model.tensors[f"{layer}.{slot}"], slot == "router")
            else:
                yield quantised([model.tensors[f"{layer}.{slot}"]])


def write(model, options):
    folder = os.path.join(options.output, "ckpt-0")
    os.makedirs(folder, exist_ok=True)
    for index, value in enumerate(objects(model)):
        with open(os.path.join(folder, f"tensor{index:05}_000"), "wb") as file:
            pickle.dump(value, file, protocol=4)
