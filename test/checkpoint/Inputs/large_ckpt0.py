"""A ckpt-0 of random weights that is large enough to be caught while it is packed, and its config.json."""
import json
import os
import pickle
import random
import sys

import faults  # puts the generator on the path
import ckpt0

D, KV, F, E, L, V = 512, 256, 2048, 4, 4, 1024
RANDOM = random.Random(1)


def plain(*shape):
    count = 1
    for size in shape:
        count *= size
    return ckpt0.numpy_array("f4", shape, b"\0\0\x80\x3f" * count)


def quantised(*shape, blocks=1):
    count = 1
    for size in shape:
        count *= size
    scales = shape[:-2] + (blocks, shape[-1])
    exponents = b"".join(bytes([RANDOM.randrange(128), 0x3B]) for _ in range(count // shape[-2] * blocks))
    return ckpt0.QuantizedWeight8bit(ckpt0.numpy_array("i1", shape, RANDOM.randbytes(count)),
                                     ckpt0.numpy_array(ckpt0.ML_DTYPES.bfloat16, scales, exponents))


def tensors():
    yield plain(V, D)
    yield plain(D)
    for _ in range(L):
        yield quantised(E, D, F)
        yield quantised(E, F, D, blocks=8)
        yield quantised(E, D, F)
        yield quantised(D, KV)
        yield quantised(D, D, blocks=8)
        yield quantised(D, D)
        yield quantised(D, KV)
        for _ in range(4):
            yield plain(D)
        yield plain(D, E)


def main(folder):
    os.makedirs(folder)
    for index, value in enumerate(tensors()):
        with open(os.path.join(folder, f"tensor{index:05}_000"), "wb") as file:
            pickle.dump(value, file, protocol=4)
    config = {"model_type": "grok-1", "torch_dtype": "bfloat16", "vocab_size": V, "hidden_size": D, "num_hidden_layers": L,
              "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128, "num_experts": E,
              "num_experts_per_tok": 2, "intermediate_size": F, "embedding_multiplier_scale": 22.6,
              "output_multiplier_scale": 0.6}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)


main(sys.argv[1])
