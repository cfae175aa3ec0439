"""GGUF files that must be refused."""
import os
import struct
import sys

import faults
import generate
import gguf
import model

OPTIONS = generate.parse(["--layout", "gguf", "-o", "unused"])
MODEL = model.Model(OPTIONS)
PAIRS = gguf.metadata(MODEL)
TENSORS = gguf.contents(MODEL, OPTIONS)
GOOD = gguf.file_bytes(PAIRS, TENSORS)
NORM = "output_norm.weight"


def write(place, data, name="model.gguf"):
    MODEL.write_config(os.path.join(place, "config.json"))
    with open(os.path.join(place, name), "wb") as file:
        file.write(data)


def of(data, name="model.gguf"):
    return lambda place: write(place, data, name)


def edited(old, new):
    if old not in GOOD:
        sys.exit(f"{old}: not in the file")
    return of(GOOD.replace(old, new, 1))


def keys(**changes):
    pairs = {**PAIRS, **{k.replace("__", "."): v for k, v in changes.items()}}
    return of(gguf.file_bytes({k: v for k, v in pairs.items() if v is not None}, TENSORS))


def tensors(changes):
    made = {**TENSORS, **changes}
    return of(gguf.file_bytes(PAIRS, {k: v for k, v in made.items() if v is not None}))


def info(name):
    """Where a tensor's dimensions begin."""
    return GOOD.index(gguf.text(name)) + len(gguf.text(name))


def at(position, data):
    return of(GOOD[:position] + data + GOOD[position + len(data):])


def array_of(kind, count):
    """A key with an array in front of the others."""
    made = gguf.text("a.b") + struct.pack("<IIQ", gguf.ARRAY, kind, count)
    return of(GOOD[:16] + struct.pack("<Q", len(PAIRS) + 1) + made + GOOD[24:])


def with_hole(pairs, size):
    """`pairs` in front of the others, and a hole of `size` bytes behind their beginning."""
    def fill(place):
        write(place, GOOD[:16] + struct.pack("<Q", len(PAIRS) + 1) + pairs)
        os.truncate(os.path.join(place, "model.gguf"), 24 + len(pairs) + size)
    return fill


def long_texts(place):
    """Texts in holes, each as long as one may be."""
    write(place, GOOD[:16] + struct.pack("<Q", 16))
    with open(os.path.join(place, "model.gguf"), "r+b") as file:
        file.seek(24)
        for number in range(16):
            file.write(gguf.text(f"a.{number}") + struct.pack("<IQ", gguf.STRING, 2**24))
            file.seek(2**24, os.SEEK_CUR)
        file.truncate()


def split(*numbers):
    """The parts of these numbers."""
    def fill(place):
        generate.main(["--layout", "gguf-split", "-o", place])
        for number in {1, 2} - set(numbers):
            os.remove(os.path.join(place, f"model-{number:05}-of-00002.gguf"))
    return fill


def wrong_part(place):
    """The second part is the first again."""
    split(1, 2)(place)
    with open(os.path.join(place, "model-00001-of-00002.gguf"), "rb") as file:
        write(place, file.read(), "model-00002-of-00002.gguf")


def two_files(place):
    write(place, GOOD, "a.gguf")
    write(place, GOOD, "b.gguf")


def empty_between():
    """Two tensors at one place, and one without elements between them."""
    made = {"a": ((16,), 0, b"\0" * 64), "b": ((16,), 0, b"\0" * 64), "c": ((0,), 0, b"")}
    data = bytearray(gguf.file_bytes(PAIRS, made))
    for name, offset in (("b", 32), ("c", 32)):
        place = data.index(gguf.text(name) + struct.pack("<I", 1)) + len(gguf.text(name)) + 16
        data[place:place + 8] = struct.pack("<Q", offset)
    return of(bytes(data))


COUNT = info(NORM)
CASES = {
    "magic": of(b"GGML" + GOOD[4:]),
    "empty": of(b""),
    "version": at(4, struct.pack("<I", 1)),
    "big-endian": at(4, struct.pack(">I", 3)),
    "tensor-count": at(8, struct.pack("<Q", 2**60)),
    "more-tensors": at(8, struct.pack("<Q", len(TENSORS) + 1)),
    "key-count": at(16, struct.pack("<Q", 2**60)),
    "cut-header": of(GOOD[:200]),
    "cut-data": of(GOOD[:-1]),
    "long-key": at(24, struct.pack("<Q", 2**63)),
    "value-type": edited(gguf.text("general.name") + b"\x08", gguf.text("general.name") + b"\x0d"),
    "long-array": array_of(4, 2**62),
    "long-texts": array_of(8, 2**61),
    "many-texts": with_hole(gguf.text("a.b") + struct.pack("<IIQ", gguf.ARRAY, 8, 2**26 + 1), 2**30),
    "many-bytes": with_hole(gguf.text("a.b") + struct.pack("<IIQ", gguf.ARRAY, 10, 2**25), 2**28),
    "many-bytes-of-texts": with_hole(gguf.text("a.b") + struct.pack("<IIQ", gguf.ARRAY, 8, 2**25), 2**28),
    "many-long-texts": long_texts,
    "nested-array": array_of(9, 1),
    "duplicate-key": edited(gguf.text("grok.logit_scale"), gguf.text("grok.block_count")),
    "alignment-zero": keys(general__alignment=0),
    "alignment-seven": keys(general__alignment=7),
    "alignment-type": keys(general__alignment="32"),
    "architecture": keys(general__architecture="llama"),
    "rank": at(COUNT, struct.pack("<I", 5)),
    "overflow": at(COUNT + 4, struct.pack("<Q", 2**63)),
    "type": at(COUNT + 12, struct.pack("<I", 12)),
    "unaligned": at(COUNT + 16, struct.pack("<Q", 1)),
    "far-away": at(COUNT + 16, struct.pack("<Q", 2**63)),
    "overlap": at(COUNT + 16, struct.pack("<Q", 0)),
    "blocks": tensors({"token_embd.weight": ((33, 48), 8, b"\0" * 34 * 48)}),
    "per-expert": tensors({"blk.0.ffn_gate.3.weight": ((32, 64), 30, b"\0" * 4096)}),
    "per-expert-coded": tensors({"blk.0.ffn_gate.3.weight": ((32, 64), 12, b"\0" * 1152)}),
    "both-norms": tensors({"blk.0.layer_output_norm.weight": TENSORS["blk.0.post_ffw_norm.weight"]}),
    "missing": tensors({"blk.1.ffn_up_exps.weight": None}),
    "extra": tensors({"blk.2.attn_norm.weight": TENSORS["blk.1.attn_norm.weight"]}),
    "dense": tensors({"blk.0.ffn_gate.weight": ((32, 64), 30, b"\0" * 4096)}),
    "shape": tensors({"blk.0.ffn_gate_exps.weight": ((64, 32, 4), 30, b"\0" * 16384)}),
    "other-width": keys(grok__embedding_length=64),
    "other-blocks": keys(grok__block_count=2**31),
    "other-scale": keys(grok__embedding_scale=78.38),
    "blocks-text": keys(grok__block_count="two"),
    "heads-list": keys(grok__attention__head_count_kv=["2", "2"]),
    "expert-width": keys(grok__expert_feed_forward_length=999),
    "width": keys(grok__feed_forward_length=999),
    "router-cap": keys(grok__router_logit_softcapping=7.0),
    "vocabulary": keys(grok__vocab_size=49),
    "sliding-window": keys(grok__attention__sliding_window=7),
    "not-causal": keys(grok__attention__causal=0),
    "gating": keys(grok__expert_gating_func=2),
    "gating-text": keys(grok__expert_gating_func="sigmoid"),
    "weights-scale": keys(grok__expert_weights_scale=2.5),
    "linear-scaling": keys(grok__rope__scaling__type="linear", grok__rope__scaling__factor=4.0),
    "unnamed-scaling": keys(grok__rope__scaling__factor=4.0),
    "old-scaling": keys(grok__rope__scale_linear=2.0),
    "other-scaling": keys(grok__rope__scaling__type="longrope"),
    "scaling-number": keys(grok__rope__scaling__type=1),
    "empty-between": empty_between(),
    "numbered-from-zero": of(GOOD, "m-00000-of-00000.gguf"),
    "number-too-large": of(GOOD, "m-00003-of-00002.gguf"),
    "missing-part": split(1),
    "wrong-part": wrong_part,
    "two-files": two_files,
}

if __name__ == "__main__":
    faults.run(sys.argv[1], sys.argv[2], CASES, grokrun=sys.argv[3])
