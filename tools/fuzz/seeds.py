"""Writes the fuzz targets' seeds, small valid inputs of every kind, and their dictionaries, the words in what reads them.

Run it after a format changed. Findings stand beside the seeds under other names, and stay.
"""
import argparse
import json
import os
import pickle
import re
import sys
import tempfile

import bundles
import sentencepiece

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "tools/checkpoints"))
import ckpt0  # noqa: E402
import gguf  # noqa: E402
import model  # noqa: E402
import safetensors  # noqa: E402
import tokjson  # noqa: E402
import torchfile  # noqa: E402

# A model of a few hundred bytes, so that what is mutated is what describes it. Q8_0 needs rows of 32.
model.D, model.H, model.K, model.E, model.FD = 4, 1, 1, 2, 4
model.NARROW = (4, 4)
Q8_WIDTH = 32

JSON_WORDS = ('{', '}', '[', ']', ':', ',', '"', "null", "true", "false", "0", "-1", "1e308", "4294967296",
              "18446744073709551616", "\\u0000", "\\ud800")
# What reads each kind of input: words in quotes are its keys and values.
SOURCES = {
    "config": ("compiler/Config/Config.cpp", "compiler/Config/HashRouting.cpp"),
    "target": ("compiler/Target/Target.cpp",),
    "manifest": ("runtime/bundle/Manifest.cpp", "runtime/bundle/Manifest.h", "runtime/bundle/PredictionCheck.cpp",
                 "compiler/Target/Target.cpp"),
    "model": ("runtime/bundle/Manifest.cpp", "runtime/bundle/ModelConfig.cpp"),
    "index": ("runtime/checkpoint/ShardedIndex.cpp",),
    "tokjson": ("runtime/tokenizer/BytePair.cpp",),
    "sentencepiece": (),
    "serve": ("tools/grokrun/serve/Protocol.cpp",),
    "histogram": ("compiler/Routing/Pruning.cpp",),
    "safetensors": ("runtime/checkpoint/HeaderJson.cpp", "runtime/checkpoint/SafetensorsHeader.cpp"),
    "gguf": ("runtime/checkpoint/GgufHeader.cpp", "runtime/checkpoint/GgufNumbers.cpp", "runtime/checkpoint/GgufFiles.cpp"),
    "plan": ("runtime/bundle/PlanTables.cpp", "runtime/bundle/PlanCheck.cpp"),
    "pickle": ("runtime/checkpoint/TorchFile.cpp",),
    "zip": ("runtime/checkpoint/TorchFile.cpp",),
    "jax": ("runtime/checkpoint/JaxFiles.cpp",),
    "ir": ("ir/Model/GrokDialect.td", "ir/Model/GrokOps.td", "ir/Plan/PlanDialect.td", "ir/Plan/PlanOps.td"),
}
JSON_KINDS = ("config", "target", "manifest", "model", "index", "tokjson", "serve", "histogram", "safetensors")
# Values whose bytes mean something to the binary readers.
BINARY = {
    "pickle": [b"\x80\x02", b"\x8a\x08", b"\x8d", b"\x95", b"c", b"R", b"Q", b"h", b"q", b"r", b"j", b"(", b"t", b"}", b"]", b"u", b"s", b"b", b"."],
    "zip": [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"\xff\xff\xff\xff", b"\x01\x00\x18\x00"],
    "gguf": [b"GGUF", *(bytes([t, 0, 0, 0]) for t in range(13)), b"\xff" * 8, b"\0" * 8],
    "sentencepiece": [b"\x0a", b"\x12", b"\x1a", b"\x15", b"\x18", b"\x2a", b"\x98\x02\x01", b"\xe2\x96\x81", b"<0x41>", b"\xff" * 4, b"\0" * 4, b"\x9a\x80\x80\x80\x10",
                      b"\x18\x04\x18\x63", b"\x18\x84\x80\x80\x80\x10"],
    "tokjson": [b"\\\\K", b"(?(DEFINE)", b"(?=", b"(?<s>", b"(?&s)"],
    "plan": [b"GROKPLAN", b"\xff" * 4, b"\xff" * 8, b"\0" * 8],
}
BINARY["jax"] = BINARY["pickle"]


def options(**changes):
    return argparse.Namespace(**{"family": "grok-1", "layers": 1, "seed": "1", "grid": "half", "blocks": 2, "store": "bf16",
                                 "spelling": "self_attn", "vocabulary": 4, "old_names": False, "zip64": False,
                                 "transposed": False, "wide": False, **changes})


def written(write, name, **changes):
    """The bytes of the file `name` that a layout's writer writes."""
    with tempfile.TemporaryDirectory() as folder:
        o = options(output=folder, **changes)
        write(model.Model(o), o)
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()


def copies(target, *paths):
    for path in paths:
        with open(os.path.join(ROOT, path), "rb") as file:
            yield target, path.replace("/", "-").replace("test-", ""), file.read()


def texts():
    models = [f"test/models/{m}/config.json" for m in ("grok1-mha-top1", "grok2-residual", "hash-offset", "tiny-top2")]
    yield from copies("config", *models, "test/fuzz/models/hash.json", "test/fuzz/models/learned.json",
                      "test/pipeline/Inputs/grok-1.json", "test/pipeline/Inputs/grok-2.json")
    yield from copies("target", "targets/cpu.json", "targets/a100-sxm4-80gb.json", "targets/h200.json")
    yield "index", "safetensors.json", written(safetensors.write_sharded, "model.safetensors.index.json")
    yield "index", "torch.json", written(torchfile.write_sharded, "pytorch_model.bin.index.json")
    # The target puts the tokens of all bytes in front.
    tokens = {k: v for k, v in tokjson.content(256).items() if k != "regular_tokens"}
    more = ',{"bytes":[104,105],"token":256},{"bytes":[104,105,33],"token":257}],' + json.dumps({**tokens, "vocab_size": 290})[1:]
    special = [{"bytes": list(s.encode()), "token": 258 + i} for i, s in enumerate(tokjson.SPECIAL)]
    more = more.replace(json.dumps(tokens["special_tokens"]), json.dumps(special))
    yield "tokjson", "v1.json", more.encode()
    yield "tokjson", "pattern.json", more[:-1].encode() + b',"pat_str":"\\\\p{L}+|\\\\s+|(?i:\'s)|."}'
    # A match that begins behind its end: the text has the "ia" of "special".
    yield "tokjson", "begin-behind-end.json", more[:-1].encode() + b',"pat_str":"(?(DEFINE)(?<s>a\\\\K))i(?=(?&s))|."}'
    for kind in sentencepiece.TYPES:
        yield "sentencepiece", kind, sentencepiece.model(kind)
    yield "sentencepiece", "rules", sentencepiece.model("bpe", rules=True)
    yield "sentencepiece", "bytes", sentencepiece.model("unigram", byte_fallback=True)
    yield "serve", "ids", b'{"id":"a","ids":[0,2147483647],"max_new_tokens":7,"deadline_ms":1.5,"stream":true,"seed":18446744073709551615}'
    yield "serve", "prompt", '{"id":-7,"prompt":"Grüße, \\ud83d\\ude00\\n","ignore_eos":true,"temperature":0.5}'.encode()
    yield "serve", "deep", b'{"prompt":' + b"[" * 9 + b"]" * 9 + b"}"
    yield "ids", "commas", b"1,2,3"
    yield "ids", "lines", b"0\n2147483647 7\t8,\n 9\n"
    yield "histogram", "counts", b'{"histogram": [0, 1, 12, 9007199254740991]}'


def checkpoints():
    yield "safetensors", "one", written(safetensors.write_single, "model.safetensors")
    yield "safetensors", "f32", written(safetensors.write_single, "model.safetensors", store="f32", family="grok-2")
    for store in ("bf16", "f32"):
        yield "gguf", store, written(gguf.write, "model.gguf", store=store, family="grok-2")
    yield "gguf", "part", written(gguf.write_split, "model-00002-of-00002.gguf")
    q8 = {"weight": ((Q8_WIDTH, 1), gguf.TYPES["q8_0"], bytes(34))}
    yield "gguf", "q8_0", gguf.file_bytes({"general.architecture": "grok"}, q8)
    for zip64 in (False, True):
        yield "zip", f"zip{64 if zip64 else 32}", written(torchfile.write_single, "pytorch_model.bin", zip64=zip64)
    # The target's archive has storages of 64 and of 96 bytes.
    tensors = {"a": ((4, 8), bytes(64)), "b": ((6, 8), bytes(96))}
    for transposed in (False, True):
        entries = torchfile.archive(tensors, "bf16", options(transposed=transposed))
        yield "pickle", "transposed" if transposed else "plain", entries["data.pkl"]
    wide = torchfile.archive({"v": ((16,), bytes(64)), "w": ((4, 6), bytes(96))}, "f32", options())
    yield "pickle", "f32", wide["data.pkl"]
    o = options(grid="int8")
    made = model.Model(o)
    for name, value in zip(("table", "vector", "stack"), ckpt0.objects(made)):
        yield "jax", name, pickle.dumps(value, protocol=4)
    yield "jax", "matrix", pickle.dumps(ckpt0.quantised([made.tensors["0.attn_out"]]), protocol=4)
    yield "jax", "protocol-2", pickle.dumps(ckpt0.plain(made.tensors["final_norm"], False), protocol=2)


def limits():
    """IR just within and beyond tools/grok-opt/TextLimits.h."""
    def aliases(count, text):
        lines = ["#a0 = 1 : i32", *(f"#a{i} = " + text.replace("@", f"#a{i - 1}") for i in range(1, count))]
        return "\n".join([*lines, f"module attributes {{x.a = #a{count - 1}}} {{}}\n"]).encode()

    yield "ir", "aliases-nested", aliases(100, "[@]")
    yield "ir", "aliases-too-deep", aliases(200, "[@]")
    yield "ir", "aliases-doubled", aliases(8, "[@, @]")
    yield "ir", "aliases-doubled-too-often", aliases(40, "[@, @]")
    yield "ir", "comment-ends-with-carriage-return", b"// x\rmodule attributes {x.a = " + b"[" * 200 + b"]" * 200 + b"} {}\n"
    for number in (255, 4294967295):
        yield "ir", f"result-{number}", b'module { "builtin.unrealized_conversion_cast"(%%0#%d) : (i1) -> () }' % number
    for name, count in (("affine-operators", 100), ("affine-too-long", 600)):
        yield "ir", name, b"module attributes {x.a = affine_map<(d0)[s0] -> (d0" + b" mod s0" * count + b")>} {}\n"


def bundle_files(grokc):
    with tempfile.TemporaryDirectory() as folder:
        parts = bundles.targets(folder)
        for name in ("hash", "learned"):
            config = ("--config", f"{ROOT}/test/fuzz/models/{name}.json")
            for part, file in parts.items():
                common = (grokc, "compile", *config, "--target", file, "--weights", "synthetic:1")
                more = ("--max-prefill", "64") if part != "cpu" else ()
                bundle = f"{folder}/{name}-{part}.grok"
                bundles.quietly(*common, *more, "-o", bundle)
                for target, file in (("manifest", "manifest.json"), ("model", "model.json"), ("plan", "plan.bin"),
                                     ("ir", "plan.mlir")):
                    with open(f"{bundle}/{file}", "rb") as data:
                        yield target, f"{name}-{part}", data.read()
            bundles.quietly(*common, "--emit=grok", "-o", f"{folder}/grok.mlir")
            with open(f"{folder}/grok.mlir", "rb") as data:
                yield "ir", name, data.read()


def dictionary(target):
    """libFuzzer's format: a word in quotes a line, with bytes as \\xNN."""
    words = set(BINARY.get(target, ()))
    for path in SOURCES[target]:
        with open(f"{ROOT}/{path}") as file:
            words.update(word.encode() for word in re.findall(r'"([A-Za-z_][\w.]{0,40})"', file.read()))
    if target in JSON_KINDS:
        words.update(word.encode() for word in JSON_WORDS)
    if target == "ir":  # attributes' words stand in lists, keywords in the formats of the ops
        for path in SOURCES[target]:
            with open(f"{ROOT}/{path}") as file:
                words.update(word.encode() for word in re.findall(r"`(\w+)`", file.read()))
    escaped = ("".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word) for word in sorted(words))
    return "".join(f'"{word}"\n' for word in escaped)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--grokc", default=f"{ROOT}/build/release/bin/grokc")
    parser.add_argument("-o", "--output", default=f"{ROOT}/test/fuzz")
    arguments = parser.parse_args()
    for source in (texts(), checkpoints(), limits(), bundle_files(arguments.grokc)):
        for target, name, data in source:
            os.makedirs(f"{arguments.output}/seeds/{target}", exist_ok=True)
            with open(f"{arguments.output}/seeds/{target}/{name}", "wb") as file:
                file.write(data)
    os.makedirs(f"{arguments.output}/dictionaries", exist_ok=True)
    for target in SOURCES:
        with open(f"{arguments.output}/dictionaries/{target}.dict", "w") as file:
            file.write(dictionary(target))


if __name__ == "__main__":
    main()
