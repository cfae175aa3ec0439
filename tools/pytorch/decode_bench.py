#!/usr/bin/env python3
"""Times one decode step of a Grok-family model in PyTorch, with random weights, as a baseline for grokc's own kernel.

A step takes one token id per row at position CONTEXT - 1 and does all that a greedy step does: embedding, routing on the
device, every layer with a KV cache of CONTEXT positions, the head, and the id of the largest logit. Modes:
  eager    plain PyTorch, one kernel launch after the other
  graph    the same, captured in a CUDA graph
  compile  torch.compile of the step's three parts (start, layer, head), captured in a CUDA graph
Where PyTorch has several ways to compute the experts or the attention, each is tried first and the fastest is timed.
Before each step the device buffer of ids is overwritten with other random ids, outside of what is timed. The host runs
ahead of the device, so that a replay's time is the device's, between two CUDA events; eager waits for the host, and its
time shows that.
"""
import argparse
import contextlib
import gc
import json
import math
import os
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:  # --help works without
    torch, missing = None, error

MODES = ("eager", "graph", "compile")
EXPERTS = ("gather", "all", "grouped", "reduce")
ATTENTION = ("matmul", "reduce", "flex")
SETTINGS = ("default", "max-autotune-no-cudagraphs")
ROWS = 256  # different sets of ids, used in turn


class Error(Exception):
    """What the user has to know; printed without a traceback."""


class Config:
    """The keys of a config.json that decide the shape and the mathematics of a step."""

    def __init__(self, path, layers):
        try:
            with open(path, encoding="utf-8") as file:
                raw = json.load(file)
        except (OSError, ValueError) as error:
            raise Error(f"{path}: {error}") from error
        if not isinstance(raw, dict):
            raise Error(f"{path}: found no JSON object, expected a model's config.json")

        def need(*keys):
            for key in keys:
                if raw.get(key) is not None:
                    return raw[key]
            names = " or ".join(f"'{key}'" for key in keys)
            raise Error(f"{path}: found no key {names}, expected {'one of them' if len(keys) > 1 else 'it'}")

        def cap(*keys, absent=0.0):
            values = [raw[key] for key in keys if key in raw]
            value = (values[0] or 0.0) if values else absent
            return float(value) if value > 0 else None

        self.name = os.path.splitext(os.path.basename(path))[0]
        if self.name == "config":
            self.name = os.path.basename(os.path.dirname(os.path.abspath(path)))
        self.D = need("hidden_size")
        self.V = need("vocab_size")
        self.H = need("num_attention_heads")
        self.K = need("num_key_value_heads")
        self.dh = raw.get("head_dim") or raw.get("key_size") or self.D // self.H
        self.E = need("num_local_experts", "num_experts")
        self.k = need("num_experts_per_tok", "num_selected_experts")
        self.F = need("moe_intermediate_size", "intermediate_size")
        self.residual = bool(raw.get("residual_moe", False))
        self.Fd = need("intermediate_size") if self.residual else 0
        self.all_layers = need("num_hidden_layers")
        self.L = min(layers, self.all_layers) if layers else self.all_layers
        self.eps = need("rms_norm_eps")
        self.embedding_scale = need("embedding_multiplier_scale")
        self.output_scale = need("output_multiplier_scale")
        self.score_scale = raw.get("attn_output_multiplier") or self.dh ** -0.5
        self.score_cap = cap("attn_logit_softcapping", "max_attn_value", absent=30.0)
        self.router_cap = cap("router_logit_softcapping")
        self.final_cap = cap("final_logit_softcapping")
        self.tau_length = raw.get("attn_temperature_len") or 0
        self.theta = float(raw.get("rope_theta") or 10000.0)
        self.tied = bool(raw.get("tie_word_embeddings", not self.residual))
        self.gelu = "none" if self.residual else "tanh"
        self.dtype = raw.get("torch_dtype", "bfloat16")
        self.hash = raw.get("expert_routing")
        if self.H % self.K or self.dh % 2:
            raise Error(f"{path}: found {self.H} query and {self.K} KV heads of {self.dh}, expected whole groups of even width")
        if not 1 <= self.k <= self.E:
            raise Error(f"{path}: found {self.k} experts a token of {self.E}, expected 1 to {self.E}")
        if self.hash is not None:
            self.check_hash(path)

    def check_hash(self, path):
        if self.hash.get("type") != "hash":
            raise Error(f"{path}: found expert_routing of type '{self.hash.get('type')}', expected 'hash'")
        for key in ("num_groups", "experts_per_group", "token_multiplier", "position_multiplier", "hash_bits",
                    "index_shift", "index_mask"):
            if key not in self.hash:
                raise Error(f"{path}: found no key '{key}' in 'expert_routing', expected it")
        if self.k != 1:
            raise Error(f"{path}: found {self.k} experts a token with hash routing, expected 1")

    def reachable(self):
        """The experts that some id at some position may lead to, in order; all with a learned router."""
        if self.hash is None or self.hash["hash_bits"] > 16:
            return list(range(self.E))
        rule = self.hash
        offsets = range(rule["index_mask"] + 1 if rule.get("position_offset_mask") else 1)
        return sorted({(value % rule["num_groups"]) * rule["experts_per_group"]
                       + (((value >> rule["index_shift"]) + offset) & rule["index_mask"])
                       for value in range(1 << rule["hash_bits"]) for offset in offsets})

    def layer_bytes(self, size):
        """(bytes of a layer that every step reads, bytes of one expert)."""
        heads = self.H + 2 * self.K
        shared = (heads * self.dh * self.D + self.H * self.dh * self.D + 4 * self.D + 3 * self.Fd * self.D) * size
        if self.hash is None:
            shared += self.E * self.D * 4
        return shared, 3 * self.F * self.D * size

    def resident_bytes(self, size, batch, context):
        shared, expert = self.layer_bytes(size)
        cache = 2 * batch * context * self.K * self.dh * size
        return self.V * self.D * size * (1 if self.tied else 2) + self.L * (shared + self.E * expert + cache)


def rms_norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def soft_cap(x, cap):
    return x if cap is None else torch.tanh(x * (1.0 / cap)) * cap


# The experts. x is [B, D]; index holds the expert of every (row, choice) pair, [B * k]; gate_up is [E, 2F, D]; down is
# [E, D, F]. Each returns [B * k, D].

def make_experts(config, name):
    width, choices, count, gelu = config.F, config.k, config.E, config.gelu

    def gate(u):
        return F.gelu(u[..., :width], approximate=gelu) * u[..., width:]

    def pairs(x):
        return x if choices == 1 else x.repeat_interleave(choices, 0)

    def gather(x, index, gate_up, down):
        """Copies the chosen experts, then multiplies."""
        x = pairs(x)
        if x.shape[0] == 1:
            h = gate(F.linear(x, gate_up.index_select(0, index).squeeze(0)))
            return F.linear(h, down.index_select(0, index).squeeze(0))
        h = gate(torch.bmm(gate_up.index_select(0, index), x.unsqueeze(2)).squeeze(2))
        return torch.bmm(down.index_select(0, index), h.unsqueeze(2)).squeeze(2)

    def every(x, index, gate_up, down):
        """Computes all experts for all rows, then picks."""
        rows = x.shape[0]
        h = gate(torch.bmm(x.unsqueeze(0).expand(count, -1, -1), gate_up.transpose(1, 2)))
        y = torch.bmm(h, down.transpose(1, 2))
        row = torch.arange(rows, device=x.device).unsqueeze(1).expand(rows, choices).reshape(-1)
        return y[index, row]

    def grouped(x, index, gate_up, down):
        """Sorts the pairs by expert and multiplies group by group."""
        x = pairs(x)
        order = torch.argsort(index, stable=True)
        ends = (index.unsqueeze(1) <= torch.arange(count, device=x.device)).sum(0, dtype=torch.int32)
        h = gate(torch._grouped_mm(x[order], gate_up.transpose(1, 2), offs=ends)).contiguous()
        y = torch._grouped_mm(h, down.transpose(1, 2), offs=ends)
        return torch.zeros_like(y).index_copy(0, order, y)

    def reduce(x, index, gate_up, down):
        """A sum of products over the indexed weights: torch.compile fuses the index into the reduction, without a copy."""
        x32 = pairs(x).float().unsqueeze(1)
        g = (gate_up[:, :width][index].float() * x32).sum(-1)
        u = (gate_up[:, width:][index].float() * x32).sum(-1)
        h = (F.gelu(g, approximate=gelu) * u).to(x.dtype)
        return (down[index].float() * h.float().unsqueeze(1)).sum(-1).to(x.dtype)

    return {"gather": gather, "all": every, "grouped": grouped, "reduce": reduce}[name]


def make_route(config, rank):
    """A function from ids and positions to the places of their experts, by rank; None for a learned router."""
    if config.hash is None:
        return None
    rule = config.hash
    groups, per_group, shift = rule["num_groups"], rule["experts_per_group"], rule["index_shift"]
    index_mask, offset_mask = rule["index_mask"], rule.get("position_offset_mask", 0)
    # only the low bits of the sum are used, so only the low bits of the multipliers count
    bits = (1 << rule["hash_bits"]) - 1
    token_multiplier, position_multiplier = rule["token_multiplier"] & bits, rule["position_multiplier"] & bits

    def route(ids, position):
        value = (ids * token_multiplier + position * position_multiplier) & bits
        offset = (value >> shift) + (position & offset_mask)
        expert = (value % groups) * per_group + (offset & index_mask)
        return expert if rank is None else rank[expert]

    return route


# The attention. q is [B, H, dh]; keys and values are [B, K, N, dh], with the new position in place; bias is [N], to hide
# positions, or None. Each returns [B, H * dh].

def make_attention(config, name):
    K, G, dh, scale, cap = config.K, config.H // config.K, config.dh, config.score_scale, config.score_cap
    width = config.H * config.dh

    def probabilities(scores, tau, bias):
        u = soft_cap(scores * scale, cap)
        u = u if tau is None else u * tau
        return torch.softmax(u if bias is None else u + bias, -1)

    def matmul(q, keys, values, tau, bias):
        scores = torch.matmul(q.reshape(-1, K, G, dh), keys.transpose(2, 3)).float()
        return torch.matmul(probabilities(scores, tau, bias).to(q.dtype), values).reshape(-1, width)

    def reduce(q, keys, values, tau, bias):
        scores = (q.reshape(-1, K, G, 1, dh).float() * keys.unsqueeze(2).float()).sum(-1)
        out = (probabilities(scores, tau, bias).unsqueeze(-1) * values.unsqueeze(2).float()).sum(3)
        return out.to(q.dtype).reshape(-1, width)

    def flex(q, keys, values, tau, bias):
        from torch.nn.attention.flex_attention import flex_attention

        def modify(score, batch, head, query, key):
            return soft_cap(score, cap) if bias is None else soft_cap(score, cap) + bias[key]

        out = flex_attention(q.unsqueeze(2).contiguous(), keys, values, score_mod=modify, scale=scale, enable_gqa=True)
        return out.reshape(-1, width)

    return {"matmul": matmul, "reduce": reduce, "flex": flex}[name]


class Weights:
    """Random weights, a KV cache of so many positions, and their rotations."""

    def __init__(self, config, batch, positions, dtype, device):
        self.config, self.batch, self.dtype, self.device = config, batch, dtype, device
        c = config

        def random(*shape, std):
            return torch.empty(shape, dtype=dtype, device=device).normal_(0.0, std)

        def norm():
            return torch.empty(c.D, dtype=dtype, device=device).uniform_(0.5, 1.5)

        self.embedding = random(c.V, c.D, std=1.0 / c.embedding_scale)
        self.head = self.embedding if c.tied else random(c.V, c.D, std=c.D ** -0.5)
        self.first_norm = norm()
        self.layers = []
        for _ in range(c.L):
            # A layer ends with the norm that the next layer, or the head, begins with: compiled, it fuses with the residual.
            self.layers.append((
                random((c.H + 2 * c.K) * c.dh, c.D, std=c.D ** -0.5),      # queries, keys, values
                random(c.D, c.H * c.dh, std=(c.H * c.dh) ** -0.5),         # output
                norm(), norm(), norm(), norm(),                            # post-attention, pre-moe, post-moe, next
                random(c.E, 2 * c.F, c.D, std=c.D ** -0.5),                # gate, up
                random(c.E, c.D, c.F, std=c.F ** -0.5),                    # down
                self.cache(batch, c.K, positions, c.dh),                   # key cache
                self.cache(batch, c.K, positions, c.dh),                   # value cache
                None if c.hash else torch.empty(c.E, c.D, device=device).normal_(0.0, c.D ** -0.5),
                random(2 * c.Fd, c.D, std=c.D ** -0.5) if c.residual else None,
                random(c.D, c.Fd, std=c.Fd ** -0.5) if c.residual else None,
            ))
        # Experts that no hash leads to lie behind the others, so that prefill can multiply by the others without a copy.
        reachable = c.reachable()
        self.used = len(reachable)
        self.rank = None
        if self.used < c.E:
            self.rank = torch.zeros(c.E, dtype=torch.int64)
            self.rank[torch.tensor(reachable)] = torch.arange(self.used)
            self.rank = self.rank.to(device)
        half = c.dh // 2
        frequency = c.theta ** (torch.arange(half, dtype=torch.float64) * (-2.0 / c.dh))
        angle = torch.arange(positions, dtype=torch.float64).unsqueeze(1) * frequency
        cos, sin = torch.cos(angle), torch.sin(angle)
        # x * cos + (x with its halves swapped) * sin is the half-rotation, with the sign in the table
        self.cos = torch.cat((cos, cos), 1).float().to(device)
        self.sin = torch.cat((-sin, sin), 1).float().to(device)

    def cache(self, *shape):
        """What a cache holds before the first run."""
        return torch.empty(shape, dtype=self.dtype, device=self.device)

    def beginning(self, positions):
        """The layers with the first so many positions of their caches."""
        def first(cache):
            return cache[:, :, :positions]

        return [(*weights[:8], first(weights[8]), first(weights[9]), *weights[10:]) for weights in self.layers]


class Model(Weights):
    """Also the buffers of ids and position that a step reads; the cache is full."""

    masked = False  # whether positions behind the step's own are hidden, for which one more sum is computed

    def __init__(self, config, batch, context, dtype, device):
        super().__init__(config, batch, context, dtype, device)
        self.context = context
        self.ids = torch.zeros(batch, dtype=torch.int64, device=device)
        self.position = torch.full((1,), context - 1, dtype=torch.int64, device=device)

    def cache(self, *shape):
        return super().cache(*shape).normal_(0.0, 1.0)

    def parts(self, attention, experts, compiled):
        """The three functions of a step: start, layer and head."""
        c, batch = self.config, self.batch
        attend, compute = make_attention(c, attention), make_experts(c, experts)
        queries, heads, half, eps, choices, count = c.H, c.H + 2 * c.K, c.dh // 2, c.eps, c.k, c.E
        rotated, dh, gelu, dense_width = c.H + c.K, c.dh, c.gelu, c.Fd
        embedding_scale, output_scale, final_cap, router_cap = c.embedding_scale, c.output_scale, c.final_cap, c.router_cap
        tau_length, root_half, route_of = c.tau_length, math.sqrt(0.5), make_route(c, self.rank)
        masked, context = self.masked, self.context

        def start(ids, position, embedding, norm, cos, sin):
            h = F.embedding(ids, embedding) * embedding_scale
            a = rms_norm(h, norm, eps)
            tau = bias = None
            route = None if route_of is None else route_of(ids, position)
            if tau_length:
                p = position.float()
                tau = torch.where(p > tau_length, torch.log2(p.clamp(min=1.0)) / math.log2(tau_length), torch.ones_like(p))
            if masked:  # finite, so that a block of positions that are all hidden makes no NaN
                bias = (torch.arange(context, device=ids.device) > position).float() * -1e30
            cos, sin = cos.index_select(0, position).unsqueeze(0), sin.index_select(0, position).unsqueeze(0)
            return h, a, route, tau, bias, cos, sin

        def choose(x, router):
            p = torch.softmax(soft_cap(F.linear(x.float(), router), router_cap), -1)
            if not compiled:
                weight, index = torch.topk(p, choices, -1)
                return index.reshape(-1), weight
            # torch.compile fuses maxima, but calls out for topk; a chosen one drops below every probability
            left, number, weights, indices = p, torch.arange(count, device=x.device), [], []
            for _ in range(choices):
                weight, index = left.max(-1, keepdim=True)
                weights.append(weight)
                indices.append(index)
                left = torch.where(number == index, -1.0, left)
            return torch.cat(indices, 1).reshape(-1), torch.cat(weights, 1)

        def layer(h, a, route, tau, bias, cos, sin, position, weights):
            (qkv_weight, output, post_attention, pre_moe, post_moe, next_norm, gate_up, down, keys, values, router,
             dense_gate_up, dense_down) = weights
            qkv = F.linear(a, qkv_weight).view(batch, heads, dh)
            qk = qkv[:, :rotated]
            qk = (qk * cos + torch.cat((qk[..., half:], qk[..., :half]), -1) * sin).to(a.dtype)
            keys.index_copy_(2, position, qk[:, queries:].unsqueeze(2))
            values.index_copy_(2, position, qkv[:, rotated:].unsqueeze(2))
            y = F.linear(attend(qk[:, :queries], keys, values, tau, bias), output)
            h = h + rms_norm(y, post_attention, eps)
            b = rms_norm(h, pre_moe, eps)
            index, weight = (route, None) if router is None else choose(b, router)
            f = compute(b, index, gate_up, down)
            if weight is not None:
                f = (f.view(batch, choices, -1).float() * weight.unsqueeze(-1)).sum(1).to(b.dtype)
            if dense_gate_up is not None:
                u = F.linear(b, dense_gate_up)
                u = F.gelu(u[:, :dense_width], approximate=gelu) * u[:, dense_width:]
                f = (F.linear(u, dense_down) + f) * root_half
            h = h + rms_norm(f, post_moe, eps)
            return h, rms_norm(h, next_norm, eps), index

        def head(a, weight):
            logits = soft_cap(F.linear(a, weight).float() * output_scale, final_cap)
            return logits, logits.argmax(-1)

        return start, layer, head

    def plain(self):
        """The parts of an eager step that others are compared with."""
        return self.parts("matmul", "all" if self.config.E <= 2 * self.batch * self.config.k else "gather", False)

    def step(self, parts, picks=None):
        start, layer, head = parts
        h, a, *rest = start(self.ids, self.position, self.embedding, self.first_norm, self.cos, self.sin)
        for weights in self.layers:
            h, a, index = layer(h, a, *rest, self.position, weights)
            if picks is not None:
                picks.append(index)
        return head(a, self.head)


def capture(work, runs=3):
    """A function that replays work's CUDA graph; work runs some times first, on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(runs):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()
    return graph.replay  # keeps the graph alive


class Runner:
    """One way to run the step: run() does it once, logits() gives what the last one computed."""

    def __init__(self, model, mode, attention, experts, setting):
        self.name = f"attention {attention}, experts {experts}" + (f", {setting}" if setting else "")
        self.choice = {"attention": attention, "experts": experts, "setting": setting}
        self.model = model
        self.parts = model.parts(attention, experts, mode == "compile")
        cuda = model.device.type == "cuda"
        if mode == "compile":
            options = {} if setting == "default" else {"mode": setting}
            self.parts = tuple(torch.compile(part, fullgraph=True, dynamic=False, **options) for part in self.parts)
        self.eager()
        self.run = self.eager
        if mode != "eager" and cuda:
            self.capture()

    def eager(self):
        self.out = self.model.step(self.parts)

    def capture(self):
        torch.cuda.synchronize()
        if self.choice["experts"] == "grouped":
            with no_synchronisation():
                self.eager()
        self.run = capture(self.eager)

    def logits(self):
        self.run()
        return self.out[0].float().cpu()


@contextlib.contextmanager
def no_synchronisation():
    """A step that waits for the device can't be captured, and failing here is cleaner than failing in a capture."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def measure(model, run, rows, steps):
    """(microseconds of every step, wall-clock microseconds a step)."""
    for i in range(min(steps, 10)):
        model.ids.copy_(rows[i % len(rows)])
        run()
    gc.collect()
    gc.disable()
    try:
        if model.device.type != "cuda":
            times = []
            for i in range(steps):
                model.ids.copy_(rows[i % len(rows)])
                begin = time.perf_counter()
                run()
                times.append((time.perf_counter() - begin) * 1e6)
            return times, sum(times) / steps
        begin = [torch.cuda.Event(enable_timing=True) for _ in range(steps)]
        end = [torch.cuda.Event(enable_timing=True) for _ in range(steps)]
        torch.cuda.synchronize()
        wall = time.perf_counter()
        for i in range(steps):
            model.ids.copy_(rows[i % len(rows)])
            begin[i].record()
            run()
            end[i].record()
        torch.cuda.synchronize()
        wall = (time.perf_counter() - wall) * 1e6 / steps
        return [b.elapsed_time(e) * 1e3 for b, e in zip(begin, end)], wall
    finally:
        gc.enable()


def percentile(times, share):
    return sorted(times)[max(0, math.ceil(share * len(times)) - 1)]


def short(error):
    if isinstance(error, Error):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:160] if lines else 'no message'}"


def difference(logits, reference):
    """The relative error of the logits of a row; the median over rows, since one near tie of a learned router changes a row."""
    error = (logits - reference).norm(dim=-1) / reference.norm(dim=-1)
    return float(error.median()) if bool(torch.isfinite(logits).all()) else math.inf


def say(text):
    print(text, flush=True)


class Search:
    """Tries the candidates of a mode and keeps the fastest."""

    def __init__(self, model, mode, rows, reference, args):
        self.model, self.mode, self.rows, self.reference = model, mode, rows, reference
        self.best, self.best_time, self.tried = None, math.inf, []
        self.failures = []
        self.deadline = time.monotonic() + args.tune_seconds

    def attempt(self, attention, experts, setting):
        key = (attention, experts, setting)
        if key in self.tried:
            return
        if self.best and time.monotonic() > self.deadline:
            say(f"  {self.mode:8} not tried, --tune-seconds are over: {', '.join(part for part in key if part)}")
            return
        self.tried.append(key)
        begin = time.monotonic()
        try:
            runner = Runner(self.model, self.mode, attention, experts, setting)
            self.model.ids.copy_(self.rows[0])
            error = difference(runner.logits(), self.reference)
            if not error < 0.5:
                raise Error(f"the logits differ from an eager step's by {error:.2g}, relative")
            built = time.monotonic() - begin
            fast = self.model.device.type == "cuda" and self.mode != "eager"
            p50 = statistics.median(measure(self.model, runner.run, self.rows, 50 if fast else 5)[0])
        except Exception as problem:  # pylint: disable=broad-except
            self.failures.append(f"{', '.join(part for part in key if part)}: {short(problem)}")
            say(f"  {self.mode:8} failed: {self.failures[-1]}")
            return
        say(f"  {self.mode:8} {p50:9.1f} us  {runner.name} (ready in {built:.1f} s, logits within {error:.1e} of eager)")
        runner.error = error
        if p50 < self.best_time:
            self.best, self.best_time = runner, p50

    def find(self, attentions, experts, settings):
        for name in experts:
            self.attempt(attentions[0], name, settings[0])
        for which, others in (("setting", settings[1:]), ("attention", attentions[1:])):
            for other in others:
                choice = dict(self.best.choice) if self.best else {
                    "attention": attentions[0], "experts": experts[0], "setting": settings[0]}
                choice[which] = other
                self.attempt(**choice)
        if not self.best:
            raise Error(self.failures[0])
        return self.best


def candidates(config, mode, batch, dtype, device, args):
    compiled = mode == "compile"
    pairs = batch * config.k
    experts = ["reduce"] if compiled else []
    if config.E <= 2 * pairs:
        experts.append("all")
    # in other types torch._grouped_mm of PyTorch 2.11 waits for the device, which no graph can hold
    if hasattr(torch, "_grouped_mm") and dtype == torch.bfloat16 and device.type == "cuda":
        experts.append("grouped")
    if not compiled or pairs <= 16:
        experts.append("gather")
    attentions = ["matmul"]
    if compiled and device.type == "cuda":
        attentions += ["reduce"] if config.tau_length else ["reduce", "flex"]
    settings = list(SETTINGS) if compiled else [None]
    return ([args.attention] if args.attention else attentions, [args.experts] if args.experts else experts,
            [args.compile_setting] if compiled and args.compile_setting else settings)


def copy_bandwidth(device):
    """Device-to-device copy in bytes a second, read plus write."""
    size = 1 << 30
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    times = []
    for _ in range(24):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    del source, target
    torch.cuda.empty_cache()
    return 2 * size / statistics.median(times[4:])


def step_bytes(model, parts, rows):
    """(bytes that a step must read at least once, mean over ids; mean number of distinct experts a layer)."""
    c, size = model.config, model.embedding.element_size()
    shared, expert = c.layer_bytes(size)
    counts = []
    for row in rows[:32]:
        model.ids.copy_(row)
        picks = []
        model.step(parts, picks)
        counts += [len(set(index.tolist())) for index in picks]
    distinct = statistics.mean(counts)
    cache = 2 * model.batch * model.context * c.K * c.dh * size
    return c.L * (shared + distinct * expert + cache) + (c.V + model.batch) * c.D * size + c.D * size, distinct


def check_memory(config, size, batch, positions):
    free = torch.cuda.mem_get_info()[0]
    need = config.resident_bytes(size, batch, positions)
    slack = 4 << 30
    if need + slack > free:
        head = config.V * config.D * size * (1 if config.tied else 2)
        fits = int((free - slack - head) // ((need - head) / config.L))
        advice = f"; --layers {fits} fits" if fits >= 1 else ""
        raise Error(f"{config.name}: found {free / 1e9:.1f} GB of free device memory, expected {(need + slack) / 1e9:.1f} GB"
                    f" for weights, KV cache and scratch{advice}")
    return need


def parse_arguments():
    parser = make_parser(__doc__, 1, MODES, MODES)
    parser.add_argument("--context", type=int, default=512, metavar="N",
                        help="positions in the KV cache, the step's own included (default 512)")
    parser.add_argument("--steps", type=int, default=1000, metavar="N", help="timed steps a mode (default 1000)")
    parser.add_argument("--experts", choices=EXPERTS, help="don't search, use this")
    parser.add_argument("--attention", choices=ATTENTION, help="don't search, use this")
    parser.add_argument("--compile-setting", choices=SETTINGS, help="torch.compile's mode: don't search, use this")
    return checked(parser, MODES, "batch", "context", "steps", "layers")


def make_parser(text, batch, modes, default):
    """The options that all scripts have."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG.json", help="a model's config.json; no weights are read")
    parser.add_argument("--batch", type=int, default=batch, metavar="B", help=f"rows (default {batch})")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"),
                        help="of weights and cache (default: the config's)")
    parser.add_argument("--modes", default=",".join(default), metavar="LIST",
                        help=f"some of {','.join(modes)} (default {','.join(default)})")
    parser.add_argument("--layers", type=int, metavar="L", help="only the first L layers, where the model is too big")
    parser.add_argument("--json", metavar="FILE", help="write the results there, after every mode")
    parser.add_argument("--tune-seconds", type=float, default=200, metavar="S",
                        help="start no candidate of a mode after S seconds (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and ids (default 0)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu checks this script only; its times mean nothing")
    return parser


def checked(parser, modes, *counts):
    args = parser.parse_args()
    args.modes = [mode for mode in args.modes.split(",") if mode]
    for mode in args.modes:
        if mode not in modes:
            parser.error(f"found mode '{mode}', expected some of {','.join(modes)}")
    for name in counts:
        value = getattr(args, name)
        if value is not None and value < 1:
            parser.error(f"found --{name.replace('_', '-')} {value}, expected 1 or more")
    return args


def begin(args, what, positions, **shape):
    """(config, type, device, results) of a run whose shape has these names and numbers, with caches of so many positions."""
    config = Config(args.config, args.layers)
    if args.device == "cuda" and not torch.cuda.is_available():
        raise Error("found no CUDA device, expected one (--device cpu checks the script only)")
    if not hasattr(F, "rms_norm"):
        raise Error(f"found PyTorch {torch.__version__}, expected 2.5 or later")
    name = args.dtype or config.dtype
    dtype = getattr(torch, name, None) if name in ("float16", "bfloat16", "float32") else None
    if dtype is None:
        raise Error(f"{args.config}: found torch_dtype '{name}', expected float16 or bfloat16; --dtype sets another")
    device = torch.device("cuda", torch.cuda.current_device()) if args.device == "cuda" else torch.device("cpu")
    torch.manual_seed(args.seed)
    where = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    layers = f"{config.L} layers" + (f" of {config.all_layers}" if config.L < config.all_layers else "")
    say(f"{config.name}: {layers}, batch {args.batch}, {what}, {name}; PyTorch {torch.__version__}, {where}")
    results = {"config": config.name, "layers": config.L, "layers_of_model": config.all_layers, "batch": args.batch, **shape,
               "dtype": name, "torch": str(torch.__version__), "device": where, "modes": {}}
    if device.type == "cuda":
        results["resident_bytes"] = check_memory(config, 4 if dtype == torch.float32 else 2, args.batch, positions)
        results["copy_bytes_per_second"] = copy_bandwidth(device)
        say(f"device-to-device copy: {results['copy_bytes_per_second'] / 1e9:.0f} GB/s, read plus write")
    return config, dtype, device, results


def prepare(args, config, dtype, device, results, kind):
    """What all modes of a step share; returns (model, rows, reference logits)."""
    model = kind(config, args.batch, args.context, dtype, device)
    rows = list(torch.randint(0, config.V, (ROWS, args.batch), device=device).unbind(0))
    parts = model.plain()
    results["bytes_per_step"], results["experts_per_layer"] = step_bytes(model, parts, rows)
    model.ids.copy_(rows[0])
    reference = model.step(parts)[0].float().cpu()
    if not bool(torch.isfinite(reference).all()):
        raise Error("found logits that are not finite in an eager step; try another --dtype")
    say(f"a step reads {results['bytes_per_step'] / 1e9:.3f} GB once: weights, KV cache, and on average "
        f"{results['experts_per_layer']:.2f} different experts a layer")
    return model, rows, reference


def run_mode(mode, model, rows, reference, args):
    if mode == "graph" and model.device.type != "cuda":
        raise Error("found no CUDA device, expected one")
    if mode == "compile":
        raise_recompile_limit()
    search = Search(model, mode, rows, reference, args)
    runner = search.find(*candidates(model.config, mode, args.batch, model.dtype, model.device, args))
    times, wall = measure(model, runner.run, rows, args.steps)
    return {"p50_us": percentile(times, 0.5), "p99_us": percentile(times, 0.99), "max_us": max(times),
            "mean_us": statistics.mean(times), "wall_us": wall, "logit_difference": runner.error, **runner.choice}


def table(results):
    copy = results.get("copy_bytes_per_second")
    lines = ["", f"{results['config']}, batch {results['batch']}, context {results['context']}, {results['dtype']}, "
             f"{results['steps']} steps, {results['bytes_per_step'] / 1e9:.3f} GB a step"
             + (f", copy {copy / 1e9:.0f} GB/s" if copy else ""),
             f"{'mode':8} {'P50 us':>9} {'P99 us':>9} {'max us':>9} {'GB/s':>7} {'of copy':>8}  how"]
    for mode, found in results["modes"].items():
        if "failed" in found:
            lines.append(f"{mode:8} failed: {found['failed']}")
            continue
        rate = results["bytes_per_step"] / found["p50_us"] * 1e6
        how = ", ".join(f"{key} {found[key]}" for key in ("attention", "experts", "setting") if found[key])
        share = f"{rate / copy:8.2f}" if copy else f"{'-':>8}"
        lines.append(f"{mode:8} {found['p50_us']:9.1f} {found['p99_us']:9.1f} {found['max_us']:9.1f} {rate / 1e9:7.0f} {share}"
                     f"  {how}")
    return "\n".join(lines)


def raise_recompile_limit():
    """Every candidate is another version of the same three functions, and PyTorch stops at eight."""
    import torch._dynamo as dynamo
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(dynamo.config, name):
            setattr(dynamo.config, name, 64)
            return


def bench(args):
    shared = begin(args, f"context {args.context}", args.context, context=args.context, steps=args.steps)
    model, rows, reference = prepare(args, *shared, Model)
    results = shared[-1]
    return each_mode(args, results, lambda mode: run_mode(mode, model, rows, reference, args), table)


def each_mode(args, results, run, show):
    """The exit status after all modes; one that fails doesn't keep the others from running."""
    for mode in args.modes:
        try:
            results["modes"][mode] = run(mode)
        except Exception as problem:  # pylint: disable=broad-except
            results["modes"][mode] = {"failed": short(problem)}
            say(f"  {mode:8} failed, going on: {short(problem)}")
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                json.dump(results, file, indent=2)
                file.write("\n")
    say(show(results))
    return 1 if any("failed" in found for found in results["modes"].values()) else 0


def main(args, run):
    if torch is None:
        sys.exit(f"error: found no PyTorch ({missing}), expected 2.5 or later; 2.11 is what this was written for")
    torch.set_grad_enabled(False)
    try:
        return run(args)
    except (Error, OSError) as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    sys.exit(main(parse_arguments(), bench))
