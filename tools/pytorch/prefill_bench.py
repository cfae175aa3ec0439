#!/usr/bin/env python3
"""Times the prefill of a Grok-family model in PyTorch, with random weights, as a baseline for grokc's own kernels.

A run takes BATCH prompts of TOKENS ids each and does all that a greedy first token needs: embedding, every layer with
its keys and values written to a cache, the head for each prompt's last position, and the id of the largest logit. Modes:
  graph    plain PyTorch, captured in a CUDA graph
  compile  torch.compile of the run's three parts (start, layer, head), captured in a CUDA graph
Experts:
  loop     tokens sorted by expert, one cuBLAS product an expert; hash routing only, whose counts the host knows
  padded   every expert's tokens padded to the largest count, one batched product
  grouped  torch._grouped_mm over the sorted tokens (bfloat16)
Attention (SDPA has no soft-cap):
  flex     flex_attention with the soft-cap and a causal block mask, compiled
  matmul   scores in memory, float32, row by row of the batch
The first lines also time an 8192 x 8192 x 8192 product in the run's type (cuBLAS, random values), and a copy.
"""
import math
import statistics
import sys
import time

import decode_bench as common
from decode_bench import Error, capture, rms_norm, say, short, soft_cap

try:
    import torch
    import torch.nn.functional as F
except ImportError:  # --help works without
    torch = None

MODES = ("graph", "compile")
EXPERTS = ("loop", "padded", "grouped")
ATTENTION = ("flex", "matmul")


def matrix_rate(dtype, device, size=8192):
    """Operations a second of a large product on random values, the median of some runs."""
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    times = []
    for _ in range(14):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.matmul(a, b)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return 2 * size ** 3 / statistics.median(times[4:])


def sort_pairs(expert, count, most, choices):
    """How pairs of token and choice lie sorted by expert, and with room for `most` pairs an expert, all on the device: (tokens
    in that order, each pair's place in it, each expert's end, tokens with room [count, most], each pair's place there)."""
    total = expert.shape[0]
    order = torch.argsort(expert, stable=True)
    place = torch.zeros_like(order).scatter(0, order, torch.arange(total, device=expert.device))
    ends = (expert.unsqueeze(1) <= torch.arange(count, device=expert.device)).sum(0)
    begins = F.pad(ends[:-1], (1, 0))
    room = (begins.unsqueeze(1) + torch.arange(most, device=expert.device)).clamp(max=total - 1)
    back = (expert * most + place - begins[expert]).clamp(max=count * most - 1)
    return order // choices, place, ends.to(torch.int32), order[room] // choices, back


class Model:
    """Prompts of all rows, and weights whose cache a run writes from its beginning."""

    def __init__(self, weights, tokens):
        self.weights, self.tokens = weights, tokens
        self.config, self.batch, self.dtype, self.device = weights.config, weights.batch, weights.dtype, weights.device
        self.layers, self.cos, self.sin = weights.beginning(tokens), weights.cos[:tokens], weights.sin[:tokens]
        self.ids = torch.zeros(self.batch, tokens, dtype=torch.int64, device=self.device)
        self.route = common.make_route(self.config, weights.rank)
        self.sorting = self.ends = None  # with hash routing; ends are the host's, where the prompts don't change
        self.busiest = self.most = 0

    def expect(self, prompts):
        """Begins with the first of these prompts, with room for each one's busiest expert. For a learned router it is an eighth
        more than the first 64 need, since there may be others and near ties may fall otherwise."""
        self.ids.copy_(prompts[0])
        if self.route:
            experts = [self.experts_of(ids.to(self.device)) for ids in prompts]
            self.busiest = max(int(torch.bincount(expert).max()) for expert in experts)
            self.most = -(-self.busiest // 8) * 8
            self.sorting = self.sort(experts[0])
            self.ends = self.sorting[2].tolist() if len(prompts) == 1 else None
            return
        parts = self.parts("matmul", "loop")
        for ids in prompts[:64]:
            self.ids.copy_(ids)
            self.run(parts)
        self.most = -(-self.busiest * 9 // 64) * 8
        self.ids.copy_(prompts[0])

    def experts_of(self, ids):
        return self.route(ids, torch.arange(self.tokens, device=self.device)).reshape(-1)

    def sort(self, expert):
        return sort_pairs(expert, self.weights.used, self.most, self.config.k)

    def sort_again(self):
        """After other ids: what the experts need to know of them, which with a learned router is nothing."""
        if self.sorting:
            for kept, new in zip(self.sorting, self.sort(self.experts_of(self.ids))):
                kept.copy_(new)

    def experts(self, name):
        """A function of tokens, sort_pairs' result and weights; a row for every pair."""
        c, known, count = self.config, self.ends, self.weights.used

        def gate(u):
            return F.gelu(u[..., :c.F], approximate=c.gelu) * u[..., c.F:]

        def loop(b, sorting, gate_up, down):
            token, place, ends, _, _ = sorting
            x = b[token]
            out = torch.empty_like(x)
            begin = 0
            for expert, end in enumerate(known or ends.tolist()):
                if end > begin:
                    out[begin:end] = F.linear(gate(F.linear(x[begin:end], gate_up[expert])), down[expert])
                if not known:
                    self.busiest = max(self.busiest, end - begin)
                begin = end
            return out[place]

        def grouped(b, sorting, gate_up, down):
            token, place, ends, _, _ = sorting
            h = gate(torch._grouped_mm(b[token], gate_up[:count].transpose(1, 2), offs=ends)).contiguous()
            return torch._grouped_mm(h, down[:count].transpose(1, 2), offs=ends)[place]

        def padded(b, sorting, gate_up, down):
            _, _, _, token, place = sorting
            h = gate(torch.bmm(b[token], gate_up[:count].transpose(1, 2)))
            return torch.bmm(h, down[:count].transpose(1, 2)).reshape(-1, c.D)[place]

        return {"loop": loop, "grouped": grouped, "padded": padded}[name]

    def attention(self, name):
        c, batch, tokens = self.config, self.batch, self.tokens
        scale, cap, groups = c.score_scale, c.score_cap, c.H // c.K
        if name == "flex":
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, tokens, tokens, device=self.device)
            compiled = torch.compile(flex_attention, dynamic=False)

            def flex(q, keys, values):
                return compiled(q, keys, values, score_mod=lambda s, b, h, i, j: soft_cap(s, cap), block_mask=mask,
                                scale=scale, enable_gqa=True)

            return flex
        hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=self.device).triu(1)

        def matmul(q, keys, values):
            out = []
            for row in range(batch):
                scores = torch.matmul(q[row].view(c.K, groups * tokens, c.dh), keys[row].transpose(1, 2)).float()
                scores = soft_cap(scores * scale, cap).view(c.K, groups, tokens, tokens).masked_fill(hidden, -math.inf)
                weights = torch.softmax(scores, -1).to(q.dtype).view(c.K, groups * tokens, tokens)
                out.append(torch.matmul(weights, values[row]).view(c.H, tokens, c.dh))
            return torch.stack(out)

        return matmul

    def parts(self, attention, experts):
        c, batch, tokens = self.config, self.batch, self.tokens
        attend, compute = self.attention(attention), self.experts(experts)
        heads, rotated, half, eps = c.H + 2 * c.K, c.H + c.K, c.dh // 2, c.eps
        most = self.most
        if c.tau_length:
            raise Error("found an attention temperature, expected a model without; it is not written here")

        def start(ids, embedding, norm):
            h = F.embedding(ids.reshape(-1), embedding) * c.embedding_scale
            return h, rms_norm(h, norm, eps)

        def mixture(b, sorting, gate_up, down, router):
            if router is None:
                return compute(b, sorting, gate_up, down)
            p = torch.softmax(soft_cap(F.linear(b.float(), router), c.router_cap), -1)
            weight, index = torch.topk(p, c.k, -1)
            y = compute(b, sort_pairs(index.reshape(-1), c.E, most, c.k), gate_up, down).view(-1, c.k, c.D)
            return (y.float() * weight.unsqueeze(-1)).sum(1).to(b.dtype)

        def layer(h, a, cos, sin, sorting, weights):
            (qkv_weight, output, post_attention, pre_moe, post_moe, next_norm, gate_up, down, keys, values, router,
             dense_gate_up, dense_down) = weights
            qkv = F.linear(a, qkv_weight).view(batch, tokens, heads, c.dh)
            qk = qkv[:, :, :rotated]
            cos, sin = cos.view(1, tokens, 1, c.dh), sin.view(1, tokens, 1, c.dh)
            qk = (qk * cos + torch.cat((qk[..., half:], qk[..., :half]), -1) * sin).to(a.dtype)
            keys.copy_(qk[:, :, c.H:].transpose(1, 2))
            values.copy_(qkv[:, :, rotated:].transpose(1, 2))
            y = attend(qk[:, :, :c.H].transpose(1, 2).contiguous(), keys, values)
            y = F.linear(y.transpose(1, 2).reshape(batch * tokens, -1), output)
            h = h + rms_norm(y, post_attention, eps)
            b = rms_norm(h, pre_moe, eps)
            f = mixture(b, sorting, gate_up, down, router)
            if dense_gate_up is not None:
                u = F.linear(b, dense_gate_up)
                u = F.gelu(u[:, :c.Fd], approximate=c.gelu) * u[:, c.Fd:]
                f = (F.linear(u, dense_down) + f) * math.sqrt(0.5)
            h = h + rms_norm(f, post_moe, eps)
            return h, rms_norm(h, next_norm, eps)

        def head(a, weight):
            last = a.view(batch, tokens, -1)[:, -1]
            logits = soft_cap(F.linear(last, weight).float() * c.output_scale, c.final_cap)
            return logits, logits.argmax(-1)

        return start, layer, head

    def run(self, parts):
        start, layer, head = parts
        h, a = start(self.ids, self.weights.embedding, self.weights.first_norm)
        for weights in self.layers:
            h, a = layer(h, a, self.cos, self.sin, self.sorting, weights)
        return head(a, self.weights.head)


class Runner:
    def __init__(self, model, mode, attention, experts):
        self.model, self.name = model, f"attention {attention}, experts {experts}"
        self.choice = {"attention": attention, "experts": experts}
        parts = model.parts(attention, experts)
        if mode == "compile":
            parts = tuple(torch.compile(part, fullgraph=True, dynamic=False) for part in parts)
        self.parts = parts
        self.eager()
        self.replay = capture(self.eager, 2) if model.device.type == "cuda" else self.eager

    def eager(self):
        self.out = self.model.run(self.parts)

    def times(self, runs):
        """Microseconds of every run."""
        if self.model.device.type != "cuda":
            times = []
            for _ in range(runs):
                begin = time.perf_counter()
                self.replay()
                times.append((time.perf_counter() - begin) * 1e6)
            return times
        for _ in range(3):
            self.replay()
        events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(runs)]
        for begin, end in events:
            begin.record()
            self.replay()
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in events]


def candidates(model, args):
    config, cuda = model.config, model.device.type == "cuda"
    experts = (["loop"] if model.ends else []) + ["padded"]
    # in other types torch._grouped_mm of PyTorch 2.11 waits for the device, which no graph can hold
    if hasattr(torch, "_grouped_mm") and model.dtype == torch.bfloat16 and cuda:
        experts.append("grouped")
    attentions = ["flex", "matmul"] if cuda else ["matmul"]
    return [args.attention] if args.attention else attentions, [args.experts] if args.experts else experts


def find(mode, model, reference, args):
    """The fastest Runner."""
    best, failures, deadline = None, [], time.monotonic() + args.tune_seconds
    attentions, experts = candidates(model, args)
    choices = [(attentions[0], name) for name in experts] + [(name, None) for name in attentions[1:]]
    for attention, name in choices:
        name = name or (best.choice["experts"] if best else experts[0])
        if best and time.monotonic() > deadline:
            say(f"  {mode:8} not tried, --tune-seconds are over: {attention}, {name}")
            continue
        try:
            runner = Runner(model, mode, attention, name)
            runner.replay()
            error = common.difference(runner.out[0].float().cpu(), reference)
            if not error < 0.5:
                raise Error(f"the logits differ from an eager run's by {error:.2g}, relative")
            runner.p50 = statistics.median(runner.times(5))
        except Exception as problem:  # pylint: disable=broad-except
            failures.append(f"{attention}, {name}: {short(problem)}")
            say(f"  {mode:8} failed: {failures[-1]}")
            continue
        say(f"  {mode:8} {runner.p50:9.1f} us  {runner.name} (logits within {error:.1e})")
        if best is None or runner.p50 < best.p50:
            best = runner
    if best is None:
        raise Error(failures[0])
    return best


def run_mode(mode, model, reference, args):
    common.raise_recompile_limit()
    best = find(mode, model, reference, args)
    times = best.times(args.runs)
    return {"p50_us": statistics.median(times), "max_us": max(times), "mean_us": statistics.mean(times), **best.choice}


def reference_logits(model):
    logits = model.run(model.parts("matmul", "loop"))[0].float().cpu()
    if not bool(torch.isfinite(logits).all()):
        raise Error("found logits that are not finite; try another --dtype")
    return logits


def parse_arguments():
    parser = common.make_parser(__doc__, 8, MODES, MODES)
    parser.add_argument("--prompt-tokens", type=int, default=512, metavar="N", help="of each (default 512)")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="timed runs a mode (default 20)")
    parser.add_argument("--experts", choices=EXPERTS, help="don't search, use this")
    parser.add_argument("--attention", choices=ATTENTION, help="don't search, use this")
    return common.checked(parser, MODES, "batch", "prompt_tokens", "runs", "layers")


def table(results):
    return "\n".join(
        f"{mode:8} failed: {found['failed']}" if "failed" in found else
        f"{mode:8} P50 {found['p50_us']:.1f} us, mean {found['mean_us']:.1f}, max {found['max_us']:.1f}: attention "
        f"{found['attention']}, experts {found['experts']}" for mode, found in results["modes"].items())


def bench(args):
    tokens = args.prompt_tokens
    config, dtype, device, results = common.begin(args, f"prompts of {tokens}", tokens, prompt_tokens=tokens)
    if device.type == "cuda":
        results["matrix_tflop_s"] = matrix_rate(dtype, device) * 1e-12
        results["bf16_matrix_tflop_s"] = matrix_rate(torch.bfloat16, device) * 1e-12
        say(f"8192 x 8192 x 8192: {results['matrix_tflop_s']:.0f} TFLOP/s in {results['dtype']}, "
            f"{results['bf16_matrix_tflop_s']:.0f} in bfloat16")
    model = Model(common.Weights(config, args.batch, tokens, dtype, device), tokens)
    model.expect([torch.randint(0, config.V, (args.batch, tokens), device=device)])
    reference = reference_logits(model)
    return common.each_mode(args, results, lambda mode: run_mode(mode, model, reference, args), table)


if __name__ == "__main__":
    sys.exit(common.main(parse_arguments(), bench))
