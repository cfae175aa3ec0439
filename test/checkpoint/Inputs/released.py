"""The files of the released Grok-1 and Grok-2 with their names, shapes and sizes, and holes in place of the weights."""
import json
import os
import pickle
import struct
import sys

import faults  # puts the generator on the path
import ckpt0
import fakemodules

# The module of the release's bf16 type is not known. This one's length gives the files their sizes.
BF16 = fakemodules.module("some_module", bfloat16=type("bfloat16", (), {})).bfloat16
HOLE = 65536  # what is as long is not written; the pickler hands it over as it is


class SparseFile:
    def __init__(self, path):
        self.file = open(path, "wb")

    def write(self, data):
        if len(data) < HOLE:
            self.file.write(data)
        else:
            self.file.seek(len(data), os.SEEK_CUR)

    def close(self):
        self.file.truncate(self.file.tell())
        self.file.close()


def zeros(shape, width):
    for size in shape:
        width *= size
    return bytes(width)  # of the system's zero pages: takes no memory


def grok_1(folder):
    d, f, kv, experts, layers, vocabulary = 6144, 32768, 1024, 8, 64, 131072

    def plain(*shape):
        return ckpt0.numpy_array("f4", shape, zeros(shape, 4))

    def quantised(*shape, blocks=1):
        scales = shape[:-2] + (blocks, shape[-1])
        return ckpt0.QuantizedWeight8bit(ckpt0.numpy_array("i1", shape, zeros(shape, 1)),
                                         ckpt0.numpy_array(BF16, scales, zeros(scales, 2)))

    layer = [quantised(experts, d, f), quantised(experts, f, d, blocks=8), quantised(experts, d, f), quantised(d, kv),
             quantised(d, d, blocks=8), quantised(d, d), quantised(d, kv), plain(d), plain(d), plain(d), plain(d),
             plain(d, experts)]
    for index, value in enumerate([plain(vocabulary, d), plain(d)] + layer * layers):
        file = SparseFile(os.path.join(folder, f"tensor{index:05}_000"))
        pickle.dump(value, file, protocol=4)
        file.close()
    sizes = [3221225637, 24727, 1611137347, 1611399491, 1611137347, 6293814, 37847359, 37761334, 6293814] + [24727] * 4
    for index, size in enumerate(sizes + [196770]):
        if os.path.getsize(os.path.join(folder, f"tensor{index:05}_000")) != size:
            sys.exit(f"tensor {index}: another size than in the release, {size}")


def grok_2(folder):
    d, dense, f, kv, experts, layers, vocabulary, ranks = 8192, 32768, 16384, 1024, 8, 64, 131072, 8

    def write(group, which, tensors):
        header, at = {}, 0
        for name, shape in tensors.items():
            size = len(zeros(shape, 2))
            header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        with open(os.path.join(folder, f"pytorch_model-{group:05}-TP-{which}.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + at)

    def of_layers(tail, *shape):
        return {f"model.layers.{i}.{tail}.weight": shape for i in range(layers)}

    write(0, "common", {"model.embed_tokens.weight": (vocabulary, d)})
    write(1, "common", {"lm_head.weight": (vocabulary, d)})
    write(2, "common", {"model.norm.weight": (d,)})
    write(3, "common", of_layers("mlp.gate_proj", dense, d))
    write(4, "common", of_layers("mlp.down_proj", d, dense))
    write(5, "common", of_layers("mlp.up_proj", dense, d))
    for group, part, shape in ((6, "w1", (f // ranks, d)), (7, "w2", (d, f // ranks)), (8, "w3", (f // ranks, d))):
        for rank in range(ranks):
            write(group, f"{rank:03}", {name: shape for expert in range(experts) for name in
                                        of_layers(f"block_sparse_moe.experts.{expert}.{part}")})
    for group, (tail, shape) in enumerate([("self_attn.k_proj", (kv, d)), ("self_attn.o_proj", (d, d)),
                                           ("self_attn.q_proj", (d, d)), ("self_attn.v_proj", (kv, d)),
                                           ("pre_attn_norm", (d,)), ("post_attn_norm", (d,)), ("pre_moe_norm", (d,)),
                                           ("post_moe_norm", (d,)), ("block_sparse_moe.gate", (experts, d))], 9):
        write(group, "common", of_layers(tail, *shape))


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    {"grok-1": grok_1, "grok-2": grok_2}[sys.argv[1]](sys.argv[2])
