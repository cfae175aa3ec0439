"""Shards of which one has a tensor of another too: one of a later shard, or of an earlier one."""
import os
import sys

import faults  # puts the generator on the path
import generate
import model
import safetensors


def write(place, owner, other, *names):
    """`names`: of tensors. `owner`, `other`: numbers of shards."""
    generate.main(["--layout", "safetensors-sharded", "-o", place])
    made = model.Model(generate.parse(["--layout", "safetensors-sharded", "-o", place]))
    tensors = safetensors.contents(made, "bf16")
    shards = safetensors.shards_of(tensors)
    if not shards[owner - 1].keys() >= set(names):
        sys.exit(f"{names}: not in shard {owner}")
    safetensors.write_file(os.path.join(place, f"model-{other:05}-of-00003.safetensors"),
                           {**shards[other - 1], **{name: tensors[name] for name in names}}, "bf16")


write(os.path.join(sys.argv[1], "early"), 3, 1, "model.layers.0.block_sparse_moe.experts.0.w1.weight")
write(os.path.join(sys.argv[1], "late"), 1, 3, "model.embed_tokens.weight")
write(os.path.join(sys.argv[1], "several"), 3, 1,
      *(f"model.layers.0.block_sparse_moe.experts.{expert}.w1.weight" for expert in range(3)))
