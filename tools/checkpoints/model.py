"""The logical tensors of a small random model, and their names."""
import json
import random

import numbers16

FAMILIES = ("grok-1", "grok-2")
GRIDS = ("half", "q8_0", "int8", "int8-exact")
SPELLINGS = ("attn", "transformer", "self_attn")

D, H, K, E, FD = 32, 4, 2, 4, 96
NARROW = (16, 64)  # head width, expert width
WIDE = (64, 256)   # so that 8 blocks of the inputs of attn_out and down are whole steps of 32
Q8_BLOCK = 32


class Tensor:
    """Row-major [out, in], or a vector. `ints` and `scales` where the grid is int8 times something."""

    def __init__(self, name, shape, values, ints=None, scales=None, blocks=1):
        self.name, self.shape, self.values = name, shape, values
        self.ints, self.scales, self.blocks = ints, scales, blocks

    def bytes(self, store):
        return numbers16.plain_bytes(self.values, store)


def half_values(rng, count):
    """bf16 numbers that f16 holds too: 8 significant bits, and not small."""
    out = [rng.randrange(-255, 256) / 256 * 2.0 ** rng.randrange(-3, 1) for _ in range(count)]
    return numbers16.bf16_floats(numbers16.bf16_bits(out))


def exact_values(rng, rows, columns):
    """Rows that are codes of int8 times a power of two, the largest code among them: quantising gives them back."""
    out = []
    for _ in range(rows):
        scale = 2.0 ** rng.randrange(-8, -5)
        out += [scale * q for q in (127, *(rng.randrange(-127, 128) for _ in range(columns - 1)))]
    return out


class Model:
    def __init__(self, options):
        self.options = options
        self.head_dim, self.expert_width = WIDE if options.wide else NARROW
        heads, kv_heads, width = H * self.head_dim, K * self.head_dim, self.expert_width
        self.layers = options.layers
        self.dense = options.family == "grok-2"
        self.tensors = {}
        self._add("embedding", (options.vocabulary, D))
        self._add("final_norm", (D,))
        if self.dense:
            self._add("head", (options.vocabulary, D))
        for layer in range(self.layers):
            for norm in ("pre_attn_norm", "post_attn_norm", "pre_moe_norm", "post_moe_norm"):
                self._add(f"{layer}.{norm}", (D,))
            self._add(f"{layer}.query", (heads, D))
            self._add(f"{layer}.key", (kv_heads, D))
            self._add(f"{layer}.value", (kv_heads, D))
            self._add(f"{layer}.attn_out", (D, heads))
            self._add(f"{layer}.router", (E, D))
            for expert in range(E):
                self._add(f"{layer}.{expert}.gate", (width, D))
                self._add(f"{layer}.{expert}.up", (width, D))
                self._add(f"{layer}.{expert}.down", (D, width))
            if self.dense:
                self._add(f"{layer}.dense_gate", (FD, D))
                self._add(f"{layer}.dense_up", (FD, D))
                self._add(f"{layer}.dense_down", (D, FD))

    def _add(self, name, shape):
        rng = random.Random(f"{self.options.seed}:{name}")
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        grid = self.options.grid
        if len(shape) == 1:
            self.tensors[name] = Tensor(name, shape, [rng.randrange(64, 192) / 128 for _ in range(count)])
        elif name == "embedding" and grid == "int8-exact":
            self.tensors[name] = Tensor(name, shape, exact_values(rng, *shape))
        elif grid == "half" or name.endswith("router") or (grid == "int8" and name == "embedding"):
            self.tensors[name] = Tensor(name, shape, half_values(rng, count))
        elif grid == "q8_0":
            self.tensors[name] = self._q8(rng, name, shape, count)
        else:
            self.tensors[name] = self._int8(rng, name, shape, count)

    @staticmethod
    def _q8(rng, name, shape, count):
        ints = [rng.randrange(-127, 128) for _ in range(count)]
        scales = [rng.randrange(1024, 2048) / 2.0**20 for _ in range(count // Q8_BLOCK)]  # 11 bits, as f16
        values = [q * scales[i // Q8_BLOCK] for i, q in enumerate(ints)]
        return Tensor(name, shape, values, ints, scales)

    def _int8(self, rng, name, shape, count):
        """Scales for each row and block of columns; blocks of their own only where xAI cut the inputs."""
        rows, columns = shape
        blocks = self.options.blocks if name.endswith(("attn_out", "down")) else 1
        ints = [rng.randrange(-127, 128) for _ in range(count)]
        if self.options.grid == "int8-exact":
            scales = [2.0 ** rng.randrange(-11, -7) for _ in range(rows * blocks)]  # [blocks, rows]
        else:
            scales = [rng.randrange(128, 256) / 2.0**16 for _ in range(rows * blocks)]  # 8 bits, as bf16
        width = columns // blocks
        values = [q * scales[i % columns // width * rows + i // columns] for i, q in enumerate(ints)]
        return Tensor(name, shape, values, ints, scales, blocks)

    def write_config(self, path):
        config = {
            "architectures": ["Grok1ModelForCausalLM"], "model_type": "grok-1", "torch_dtype": "bfloat16",
            "vocab_size": self.options.vocabulary, "hidden_size": D, "num_hidden_layers": self.layers, "num_attention_heads": H,
            "num_key_value_heads": K, "head_dim": self.head_dim, "num_experts": E,
            "num_experts_per_tok": 2, "intermediate_size": self.expert_width, "embedding_multiplier_scale": 5.5, "output_multiplier_scale": 0.625,
            "attn_output_multiplier": 0.25, "max_attn_value": 30.0, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "max_position_embeddings": 1024, "tie_word_embeddings": True,
        }
        if self.dense:
            config.update({
                "architectures": ["Grok1ForCausalLM"], "model_type": "git", "residual_moe": True,
                "moe_intermediate_size": self.expert_width, "intermediate_size": FD, "router_logit_softcapping": 30.0,
                "final_logit_softcapping": 50, "attn_temperature_len": 4, "tie_word_embeddings": False,
            })
        with open(path, "w") as file:
            json.dump(config, file, indent=1)
            file.write("\n")

    def hf_names(self):
        """The logical tensors by their names in safetensors and .bin, in the order of the layers."""
        spelling = self.options.spelling
        return {hf_name(spelling, name): tensor for name, tensor in self.tensors.items()}


def hf_name(spelling, name):
    index = SPELLINGS.index(spelling)
    norm = ("scale", "weight", "weight")[index]
    whole = {
        "embedding": ("model.embed_tokens.weight", "transformer.in_out_embed.weight", "model.embed_tokens.weight"),
        "final_norm": (f"model.norm.{norm}", "transformer.rms_norm.weight", f"model.norm.{norm}"),
        "head": ("lm_head.weight",) * 3,
    }
    if name in whole:
        return whole[name][index]
    layer, *expert, part = name.split(".")
    prefix = ("model.layers", "transformer.decoder_layer", "model.layers")[index] + f".{layer}."
    if expert:
        parts = {"gate": ("linear", "linear", "w1"), "up": ("linear_v", "linear_v", "w3"),
                 "down": ("linear_1", "linear_1", "w2")}
        folder = ("moe_block.experts", "moe", "block_sparse_moe.experts")[index]
        return f"{prefix}{folder}.{expert[0]}.{parts[part][index]}.weight"
    jax_norms = {"pre_attn_norm": "rms_norm", "post_attn_norm": "rms_norm_1", "pre_moe_norm": "rms_norm_2",
                 "post_moe_norm": "rms_norm_3"}
    if part in jax_norms:
        return prefix + (jax_norms[part] if spelling == "transformer" else part) + f".{norm}"
    tails = {
        "query": ("attn.q_proj", "multi_head_attention.query", "self_attn.q_proj"),
        "key": ("attn.k_proj", "multi_head_attention.key", "self_attn.k_proj"),
        "value": ("attn.v_proj", "multi_head_attention.value", "self_attn.v_proj"),
        "attn_out": ("attn.o_proj", "multi_head_attention.linear", "self_attn.o_proj"),
        "router": ("moe_block.gate", "router", "block_sparse_moe.gate"),
        "dense_gate": ("", "", "mlp.gate_proj"), "dense_up": ("", "", "mlp.up_proj"),
        "dense_down": ("", "", "mlp.down_proj"),
    }
    return f"{prefix}{tails[part][index]}.weight"
