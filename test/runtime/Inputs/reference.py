"""Small models whose constants differ from every released value, against a float64 forward pass written from the paper.

reference.py GROKC GROKRUN FOLDER: compiles each case, and compares the logits of a few ids. A case also says what its
inputs must reach (scores beyond the cap and the like), for a constant that has no effect is not tested.
"""
import json
import math
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/checkpoints"))
import compare
import generate
import model
import safetensors

BOUND = 1e-4
IDS = [7, 3, 41, 0, 19, 7, 30, 12]


def matvec(tensor, x):
    columns = tensor.shape[1]
    return [sum(w * v for w, v in zip(tensor.values[r * columns:(r + 1) * columns], x)) for r in range(tensor.shape[0])]


def cap(value, limit):
    return limit * math.tanh(value / limit) if limit else value


class Reference:
    def __init__(self, made, config):
        self.t, self.c = made.tensors, config
        self.erf = config.get("hidden_act", "gelu" if config.get("residual_moe") else "tanh") == "gelu"
        self.largest = {"score": 0.0, "router": 0.0, "logit": 0.0}

    def norm(self, x, name):
        scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + self.c["rms_norm_eps"])
        return [v * scale * g for v, g in zip(x, self.t[name].values)]

    def gelu(self, z):
        if self.erf:
            return z / 2 * (1 + math.erf(z / math.sqrt(2)))
        return z / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))

    def mlp(self, x, prefix, names):
        gate, up, down = (self.t[prefix + n] for n in names)
        return matvec(down, [self.gelu(g) * u for g, u in zip(matvec(gate, x), matvec(up, x))])

    def rotate(self, head, position):
        half = len(head) // 2
        out = [0.0] * len(head)
        for j in range(half):
            angle = position * self.c["rope_theta"] ** (-2 * j / len(head))
            a, b = head[j], head[j + half]
            out[j] = a * math.cos(angle) - b * math.sin(angle)
            out[j + half] = b * math.cos(angle) + a * math.sin(angle)
        return out

    def attention(self, layer, x, position, cache):
        c, width = self.c, self.c["head_dim"]
        heads = lambda name: [v[i:i + width] for v in [matvec(self.t[f"{layer}.{name}"], x)] for i in range(0, len(v), width)]
        cache.append(([self.rotate(k, position) for k in heads("key")], heads("value")))
        length = c.get("attn_temperature_len", 0)
        temperature = math.log2(position) / math.log2(length) if length and position > length else 1
        scale = c.get("attn_output_multiplier", width**-0.5)
        limit = c.get("attn_logit_softcapping", c.get("max_attn_value", 30))
        out = []
        for n, query in enumerate(heads("query")):
            query, kv = self.rotate(query, position), n // (model.H // model.K)
            scores = [scale * sum(q * k for q, k in zip(query, keys[kv])) for keys, _ in cache]
            self.largest["score"] = max(self.largest["score"], *map(abs, scores))
            scores = [cap(s, limit) * temperature for s in scores]
            weights = [math.exp(s - max(scores)) for s in scores]
            out += [sum(w * values[kv][d] for w, (_, values) in zip(weights, cache)) / sum(weights) for d in range(width)]
        return matvec(self.t[f"{layer}.attn_out"], out)

    def experts(self, layer, x):
        scores = matvec(self.t[f"{layer}.router"], x)
        self.largest["router"] = max(self.largest["router"], *map(abs, scores))
        scores = [cap(s, self.c.get("router_logit_softcapping", 0)) for s in scores]
        weights = [math.exp(s - max(scores)) for s in scores]
        weights = [w / sum(weights) for w in weights]
        chosen = sorted(range(len(weights)), key=lambda e: (-weights[e], e))[:self.c["num_experts_per_tok"]]
        out = [0.0] * len(x)
        for e in sorted(chosen):
            out = [o + weights[e] * v for o, v in zip(out, self.mlp(x, f"{layer}.{e}.", ("gate", "up", "down")))]
        if self.c.get("residual_moe"):
            dense = self.mlp(x, f"{layer}.", ("dense_gate", "dense_up", "dense_down"))
            out = [(o + d) / math.sqrt(2) for o, d in zip(out, dense)]
        return out

    def logits(self, ids):
        caches = [[] for _ in range(self.c["num_hidden_layers"])]
        rows = []
        for position, id in enumerate(ids):
            embedding, width = self.t["embedding"], model.D
            x = [self.c["embedding_multiplier_scale"] * v for v in embedding.values[id * width:(id + 1) * width]]
            for layer, cache in enumerate(caches):
                y = self.attention(layer, self.norm(x, f"{layer}.pre_attn_norm"), position, cache)
                x = [a + b for a, b in zip(x, self.norm(y, f"{layer}.post_attn_norm"))]
                y = self.experts(layer, self.norm(x, f"{layer}.pre_moe_norm"))
                x = [a + b for a, b in zip(x, self.norm(y, f"{layer}.post_moe_norm"))]
            head = self.t["head" if "head" in self.t else "embedding"]
            row = [self.c["output_multiplier_scale"] * v for v in matvec(head, self.norm(x, "final_norm"))]
            self.largest["logit"] = max(self.largest["logit"], *map(abs, row))
            rows.append([cap(v, self.c.get("final_logit_softcapping", 0)) for v in row])
        return rows


# name: (family, layers, config, factors of tensors, what must be exceeded)
CASES = {
    "embedding-multiplier-3": ("grok-1", 1, {"embedding_multiplier_scale": 3.0}, {}, {}),
    "odd-constants": ("grok-1", 2, {"embedding_multiplier_scale": 2.75, "output_multiplier_scale": 1.375,
                                    "attn_output_multiplier": 0.4375, "max_attn_value": 11.0, "rms_norm_eps": 0.01,
                                    "rope_theta": 77.0}, {"query": 4}, {"score": 11}),
    "scores-beyond-the-cap": ("grok-1", 2, {}, {"query": 8, "key": 8}, {"score": 60}),
    "router-uncapped": ("grok-1", 2, {}, {"router": 16}, {"router": 40}),
    "router-capped": ("grok-2", 2, {}, {"router": 16}, {"router": 40}),
    "temperature-after-the-cap": ("grok-2", 2, {"attn_temperature_len": 2}, {"query": 8, "key": 8}, {"score": 60}),
    "rope-original": ("grok-2", 1, {"rope_type": "original", "scaling_factor": 16.0, "original_max_position_embeddings": 64,
                                    "rope_theta": 500.0}, {}, {}),
    "final-cap": ("grok-2", 1, {"final_logit_softcapping": 5, "output_multiplier_scale": 3.0}, {}, {"logit": 15}),
    "gelu-erf": ("grok-1", 1, {"hidden_act": "gelu"}, {"gate": 2}, {}),
    "gelu-tanh": ("grok-2", 1, {"hidden_act": "gelu_pytorch_tanh"}, {"gate": 2}, {}),
    "one-expert": ("grok-1", 1, {"num_experts_per_tok": 1}, {"router": 4}, {}),
    "all-experts": ("grok-1", 1, {"num_experts_per_tok": 4}, {}, {}),
}


def run(grokc, grokrun, folder, name):
    family, layers, changes, factors, exceeded = CASES[name]
    place = os.path.join(folder, name)
    options = generate.parse(["--layout", "safetensors", "--family", family, "--layers", str(layers), "--store", "f32", "-o",
                              place])
    made = model.Model(options)
    for key, tensor in made.tensors.items():
        factor = factors.get(key.split(".")[-1], 1)
        tensor.values = [v * factor for v in tensor.values]
    os.makedirs(place)
    path = os.path.join(place, "config.json")
    made.write_config(path)
    with open(path) as file:
        config = {**json.load(file), **changes}
    with open(path, "w") as file:
        json.dump(config, file)
    safetensors.write_single(made, options)
    bundle, output = place + ".grok", place + ".safetensors"
    subprocess.run([grokc, "compile", "--config", place, "--target", "cpu", "-o", bundle], check=True)
    subprocess.run([grokrun, "logits", bundle, "--device", "cpu", "--ids", ",".join(map(str, IDS)), "-o", output], check=True)
    (_, width), found = compare.read(output)["logits"]
    reference = Reference(made, config)
    expected = [v for row in reference.logits(IDS) for v in row]
    for what, bound in exceeded.items():
        if reference.largest[what] <= bound:
            sys.exit(f"{name}: the largest {what} is {reference.largest[what]}, expected more than {bound}")
    error = math.sqrt(sum((a - b)**2 for a, b in zip(found, expected)) / sum(b * b for b in expected))
    compare.check(f"{name}: relative error", error, BOUND)


if __name__ == "__main__":
    for case in CASES:
        run(*sys.argv[1:4], case)
