"""16-bit and scaled numbers, as Python's floats and as bytes."""
import array
import struct


def bf16_bits(values):
    """Bits of the nearest bf16, ties to even. `values` are float32 numbers."""
    wide = array.array("I", array.array("f", values).tobytes())
    return array.array("H", [(u + 0x7FFF + ((u >> 16) & 1)) >> 16 for u in wide])


def bf16_floats(bits):
    return array.array("f", array.array("I", [b << 16 for b in bits]).tobytes()).tolist()


def f16_bytes(values):
    return struct.pack(f"<{len(values)}e", *values)


def plain_bytes(values, store):
    """The values in an element type; F32 holds all of them exactly."""
    if store == "bf16":
        return bf16_bits(values).tobytes()
    if store == "f16":
        return f16_bytes(values)
    return array.array("f", values).tobytes()
