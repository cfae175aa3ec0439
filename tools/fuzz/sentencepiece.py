"""Small models of SentencePiece, byte by byte."""
import struct

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
TYPES = {"unigram": 1, "bpe": 2, "word": 3, "char": 4}
UNITS, NO_BYTE = 512, 1 << 31


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def piece(text, score=0.0, kind=NORMAL):
    return message(1, message(1, text.encode()) + b"\x15" + struct.pack("<f", score) + number(3, kind))


def charsmap():
    """A double-array trie and its texts: "a" becomes "b", "ab" "ccc"."""
    units = [NO_BYTE] * UNITS
    root, a, ab = 256, 8, 16  # where what comes after them is

    def node(index, base, label, leaf):
        units[index] = (index ^ base) << 10 | leaf << 8 | label

    node(0, root, 0, 0)
    node(root ^ ord("a"), a, ord("a"), 1)
    node(a ^ ord("b"), ab, ord("b"), 1)
    units[a], units[ab] = NO_BYTE | 0, NO_BYTE | 2
    return struct.pack("<I", 4 * UNITS) + struct.pack(f"<{UNITS}I", *units) + b"b\0ccc\0"


def model(kind, rules=False, byte_fallback=False):
    pieces = [piece("<unk>", kind=UNKNOWN), piece("<s>", kind=CONTROL), piece("</s>", kind=CONTROL),
              piece("<x>", kind=USER_DEFINED), piece("<xy>", kind=USER_DEFINED)]
    pieces += [piece(f"<0x{byte:02X}>", kind=BYTE) for byte in range(256)] if byte_fallback else []
    pieces += [piece(text, -float(i)) for i, text in enumerate(("ab", "abc", "c", "\u2581", "a", "b", "\u2581a", "\u00e9", "\u65e5"))]
    pieces += [piece("bc", -9.0, UNUSED)]
    trainer = number(3, TYPES[kind]) + (number(35, 1) if byte_fallback else b"")
    spec = message(2, charsmap()) if rules else b""
    return b"".join(pieces) + message(2, trainer) + message(3, spec)
