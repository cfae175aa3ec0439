"""Safetensors: one file, shards with an index, Grok-2's tensor-parallel set."""
import json
import os
import struct

TYPES = {"bf16": "BF16", "f16": "F16", "f32": "F32"}
RANKS = 4


def write_file(path, tensors, store):
    """`tensors`: name to (shape, bytes)."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": TYPES[store], "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, data in tensors.values():
            file.write(data)


def contents(model, store):
    return {name: (t.shape, t.bytes(store)) for name, t in model.hf_names().items()}


def write_single(model, options):
    write_file(os.path.join(options.output, "model.safetensors"), contents(model, options.store), options.store)


def shards_of(tensors, count=3):
    """Every count-th tensor, so that a layer lies in several shards."""
    names = list(tensors)
    return [{name: tensors[name] for name in names[i::count]} for i in range(count)]


def write_index(path, shards, total):
    where = {name: file for file, names in shards.items() for name in names}
    with open(path, "w") as file:
        json.dump({"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))}, file, indent=1)


def write_sharded(model, options):
    tensors = contents(model, options.store)
    shards, names = shards_of(tensors), {}
    for i, shard in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        names[name] = list(shard)
        write_file(os.path.join(options.output, name), shard, options.store)
    write_index(os.path.join(options.output, "model.safetensors.index.json"), names,
                sum(len(data) for _, data in tensors.values()))


def write_tensor_parallel(model, options):
    """As Grok-2 was released: a group of files for each kind of tensor; experts cut over the ranks."""
    groups = {}
    for name, (shape, data) in contents(model, options.store).items():
        if ".experts." not in name:
            kind = name.split(".")[-2]
            groups.setdefault((kind, None), {})[name] = (shape, data)
            continue
        kind = name.split(".")[-2]
        width = len(data) // (shape[0] * shape[1])
        for rank in range(RANKS):
            if kind == "w2":
                rows, columns = shape
                part = columns // RANKS * width
                cut = b"".join(data[r * columns * width + rank * part:][:part] for r in range(rows))
                piece = ((rows, columns // RANKS), cut)
            else:
                part = len(data) // RANKS
                piece = ((shape[0] // RANKS, shape[1]), data[rank * part:][:part])
            groups.setdefault((kind, rank), {})[name] = piece
    kinds = list(dict.fromkeys(kind for kind, _ in groups))
    for (kind, rank), tensors in groups.items():
        which = "common" if rank is None else f"{rank:03}"
        write_file(os.path.join(options.output, f"pytorch_model-{kinds.index(kind):05}-TP-{which}.safetensors"), tensors,
                   options.store)
