"""compare.py COMMAND GOLDEN ...

Compares results with a model's goldens. No package is needed.
  ids-of GOLDEN.safetensors N       prints the N-th sequence of ids (ids or ids.N)
  held-out GOLDEN.json              prints held_out_ids
  logits GOLDEN N OURS BOUND        relative error of sequence N's logits: norm of the difference over the norm
  nll GOLDEN.json EVAL.json BOUND   relative difference of the held-out loss
  ids GOLDEN.json N GENERATE.json   greedy ids and text of case N
"""
import array
import json
import math
import sys


def read(path):
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = array.array({"F32": "f", "I32": "i"}[entry["dtype"]])
        values.frombytes(data[begin:end])
        tensors[name] = (entry["shape"], values)
    return tensors


def sequence(tensors, number):
    suffix = "" if "ids" in tensors else "." + number
    return tensors["ids" + suffix][1], tensors["logits" + suffix], 1 if "ids" in tensors else 16


def compare_logits(golden, number, ours, bound):
    ids, ((rows, vocab), reference), stride = sequence(read(golden), number)
    (positions, width), logits = read(ours)["logits"]
    if positions != len(ids) or width != vocab:
        sys.exit(f"shape: found [{positions}, {width}], expected [{len(ids)}, {vocab}]")
    difference = norm = 0.0
    for row in range(rows):
        ours_row = logits[row * stride * vocab : (row * stride + 1) * vocab]
        for a, b in zip(ours_row, reference[row * vocab : (row + 1) * vocab]):
            difference += (a - b) ** 2
            norm += b * b
    check("relative error", math.sqrt(difference / norm), float(bound))


def check(what, value, bound):
    print(f"{what} {value:.3g}, bound {bound:g}")
    if not value <= bound:
        sys.exit(f"{what}: found {value:g}, expected at most {bound:g}")


def main(command, path, *rest):
    if command == "ids-of":
        print(",".join(map(str, sequence(read(path), rest[0])[0])))
    elif command == "held-out":
        print(*json.load(open(path))["held_out_ids"])
    elif command == "logits":
        compare_logits(path, *rest)
    elif command == "nll":
        expected = json.load(open(path))["held_out_nll_per_token"]
        found = json.load(open(rest[0]))["nll_per_token"]
        check("relative difference of the loss", abs(found / expected - 1), float(rest[1]))
    elif command == "ids":
        case, ours = json.load(open(path))["cases"][int(rest[0])], json.load(open(rest[1]))
        for key, found in (("prompt_ids", ours["prompt_ids"]), ("greedy_ids", ours["ids"]), ("text", ours["text"])):
            if found is not None and found != case[key]:
                sys.exit(f"{key}: found {found}, expected {case[key]}")
        print("ids and text as expected")
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
