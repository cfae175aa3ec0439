#!/usr/bin/env python3
"""Times the prefill of a Grok-family model in PyTorch, with random weights, as a baseline for grokc's own kernels.

A run takes BATCH prompts of TOKENS ids each and does all that a greedy first token needs: embedding, every layer with
its keys and values written to a cache, the head for each prompt's last position, and the id of the largest logit. Modes:
  graph    plain PyTorch, captured in a CUDA graph
  compile  torch.compile of the run's three parts (start, layer, head), captured in a CUDA graph
Experts:
  loop     tokens sorted by expert, one cuBLAS product an expert; hash routing only, whose counts the host knows
  padded   the same with every expert's tokens padded to the largest count, one batched product
  grouped  torch._grouped_mm over the sorted tokens (bfloat16)
Attention (SDPA has no soft-cap):
  flex     flex_attention with the soft-cap and a causal block mask, compiled
  matmul   scores in memory, float32, row by row of the batch
The first lines also time an 8192 x 8192 x 8192 product in the run's type (cuBLAS, random values), and a copy.
"""
import argparse
import json
import math
import statistics
import sys
import time

import decode_bench as common
from decode_bench import Config, Error, copy_bandwidth, rms_norm, say, short, soft_cap

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:  # --help works without
    torch, missing = None, error

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


class Prompts:
    """Ids of all rows, and with hash routing where each expert's tokens stand once they are sorted."""

    def __init__(self, config, batch, tokens, device):
        self.ids = torch.randint(0, config.V, (batch, tokens), device=device)
        self.order = self.counts = None
        if config.hash:
            rule = config.hash
            mask = (1 << rule["hash_bits"]) - 1
            position = torch.arange(tokens, device=device)
            value = (self.ids * (rule["token_multiplier"] & mask) + position * (rule["position_multiplier"] & mask)) & mask
            index = (value >> rule["index_shift"]) + (position & rule.get("position_offset_mask", 0))
            expert = ((value % rule["num_groups"]) * rule["experts_per_group"] + (index & rule["index_mask"])).reshape(-1)
            self.order = torch.argsort(expert, stable=True)
            self.counts = torch.bincount(expert, minlength=config.E).tolist()


class Model(common.Weights):
    """Also the prompts; the cache is what a run writes."""

    def __init__(self, config, batch, tokens, dtype, device):
        super().__init__(config, batch, tokens, dtype, device)
        self.tokens = tokens
        self.prompts = Prompts(config, batch, tokens, device)

    def experts(self, name):
        c, counts = self.config, self.prompts.counts

        def gate(u):
            return F.gelu(u[..., :c.F], approximate=c.gelu) * u[..., c.F:]

        def loop(x, gate_up, down):
            out = torch.empty_like(x)
            begin = 0
            for expert, count in enumerate(counts):
                if count:
                    rows = x[begin:begin + count]
                    out[begin:begin + count] = F.linear(gate(F.linear(rows, gate_up[expert])), down[expert])
                begin += count
            return out

        def grouped(x, ends, gate_up, down):
            h = gate(torch._grouped_mm(x, gate_up.transpose(1, 2), offs=ends)).contiguous()
            return torch._grouped_mm(h, down.transpose(1, 2), offs=ends)

        if name == "grouped":
            return grouped
        if name == "loop":
            return lambda x, ends, gate_up, down: loop(x, gate_up, down)

        # padded: every used expert's tokens at [expert][0 .. most), and where each sorted token stands there
        used = [expert for expert, count in enumerate(counts) if count]
        most = -(-max(counts) // 8) * 8
        begins = [sum(counts[:expert]) for expert in used]
        last = self.batch * self.tokens - 1
        place = torch.tensor([[min(begin + i, last) for i in range(most)] for begin in begins], device=self.device)
        back = torch.tensor([row * most + i for row, expert in enumerate(used) for i in range(counts[expert])],
                            device=self.device)
        chosen = torch.tensor(used, device=self.device)

        def padded(x, ends, gate_up, down):
            if len(used) < c.E:
                gate_up, down = gate_up[chosen], down[chosen]
            h = gate(torch.bmm(x[place], gate_up.transpose(1, 2)))
            return torch.bmm(h, down.transpose(1, 2)).reshape(-1, c.D)[back]

        return padded

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
        c, batch, tokens, order = self.config, self.batch, self.tokens, self.prompts.order
        attend, compute = self.attention(attention), self.experts(experts)
        heads, rotated, half, eps = c.H + 2 * c.K, c.H + c.K, c.dh // 2, c.eps
        inverse = None if order is None else torch.argsort(order)
        number = torch.arange(c.E, device=self.device)
        if c.tau_length:
            raise Error("found an attention temperature, expected a model without; it is not written here")
        hash_ends = None
        if self.prompts.counts:
            hash_ends = torch.tensor(self.prompts.counts, device=self.device).cumsum(0).to(torch.int32)

        def start(ids, embedding, norm):
            h = F.embedding(ids.reshape(-1), embedding) * c.embedding_scale
            return h, rms_norm(h, norm, eps)

        def mixture(b, gate_up, down, router):
            if router is None:
                return compute(b[order], hash_ends, gate_up, down)[inverse]
            p = torch.softmax(soft_cap(F.linear(b.float(), router), c.router_cap), -1)
            weight, index = torch.topk(p, c.k, -1)
            sorting = torch.argsort(index.reshape(-1), stable=True)
            ends = (index.reshape(-1, 1) <= number).sum(0, dtype=torch.int32)
            y = compute(b[sorting // c.k], ends, gate_up, down)
            y = torch.zeros_like(y).index_copy(0, sorting, y).view(-1, c.k, c.D)
            return (y.float() * weight.unsqueeze(-1)).sum(1).to(b.dtype)

        def layer(h, a, cos, sin, weights):
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
            f = mixture(b, gate_up, down, router)
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
        h, a = start(self.prompts.ids, self.embedding, self.first_norm)
        for weights in self.layers:
            h, a = layer(h, a, self.cos, self.sin, weights)
        return head(a, self.head)


class Runner:
    def __init__(self, model, mode, attention, experts):
        self.model, self.name = model, f"attention {attention}, experts {experts}"
        self.choice = {"attention": attention, "experts": experts}
        parts = model.parts(attention, experts)
        if mode == "compile":
            parts = tuple(torch.compile(part, fullgraph=True, dynamic=False) for part in parts)
        self.parts = parts
        self.out = model.run(parts)
        self.replay = self.eager
        if model.device.type == "cuda":
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(2):
                    self.out = model.run(parts)
            torch.cuda.current_stream().wait_stream(stream)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self.out = model.run(parts)
            self.replay = graph.replay

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


def candidates(config, dtype, device, args):
    experts = ["loop", "padded"] if config.hash else []
    # in other types torch._grouped_mm of PyTorch 2.11 waits for the device, which no graph can hold
    if hasattr(torch, "_grouped_mm") and dtype == torch.bfloat16 and device.type == "cuda":
        experts.append("grouped")
    if not experts:
        raise Error("found a learned router in float16, expected bfloat16: the host doesn't know the experts' counts, and "
                    "the grouped product of other types waits for the device; add --dtype bfloat16")
    attentions = ["flex", "matmul"] if device.type == "cuda" else ["matmul"]
    return [args.attention] if args.attention else attentions, [args.experts] if args.experts else experts


def run_mode(mode, model, reference, args):
    best, failures = None, []
    attentions, experts = candidates(model.config, model.dtype, model.device, args)
    choices = [(attentions[0], name) for name in experts] + [(name, None) for name in attentions[1:]]
    for attention, name in choices:
        name = name or (best.choice["experts"] if best else experts[0])
        try:
            runner = Runner(model, mode, attention, name)
            runner.replay()
            error = common.difference(runner.out[0].float().cpu(), reference)
            if not error < 0.5:
                raise Error(f"the logits differ from the first candidate's by {error:.2g}, relative")
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
    times = best.times(args.runs)
    return {"p50_us": statistics.median(times), "max_us": max(times), "mean_us": statistics.mean(times), **best.choice}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", metavar="CONFIG.json", help="a model's config.json; no weights are read")
    parser.add_argument("--batch", type=int, default=8, metavar="B", help="prompts (default 8)")
    parser.add_argument("--prompt-tokens", type=int, default=512, metavar="N", help="of each (default 512)")
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="timed runs a mode (default 20)")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), help="default: the config's")
    parser.add_argument("--modes", default=",".join(MODES), metavar="LIST", help=f"default {','.join(MODES)}")
    parser.add_argument("--layers", type=int, metavar="L", help="only the first L layers, where the model is too big")
    parser.add_argument("--json", metavar="FILE", help="write the results there")
    parser.add_argument("--experts", choices=EXPERTS, help="don't search, use this")
    parser.add_argument("--attention", choices=ATTENTION, help="don't search, use this")
    parser.add_argument("--seed", type=int, default=0, help="of weights and ids (default 0)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda",
                        help="cpu checks this script only; its times mean nothing")
    args = parser.parse_args()
    args.modes = [mode for mode in args.modes.split(",") if mode]
    for mode in args.modes:
        if mode not in MODES:
            parser.error(f"found mode '{mode}', expected some of {','.join(MODES)}")
    return args


def bench(args):
    config = Config(args.config, args.layers)
    if args.device == "cuda" and not torch.cuda.is_available():
        raise Error("found no CUDA device, expected one (--device cpu checks the script only)")
    device = torch.device(args.device)
    name = args.dtype or config.dtype
    dtype = getattr(torch, name)
    torch.manual_seed(args.seed)
    say(f"{config.name}: {config.L} layers, {args.batch} x {args.prompt_tokens} tokens, {name}; PyTorch {torch.__version__}")
    results = {"config": config.name, "layers": config.L, "batch": args.batch, "prompt_tokens": args.prompt_tokens,
               "dtype": name, "torch": str(torch.__version__), "modes": {}}
    if device.type == "cuda":
        results["matrix_tflop_s"] = matrix_rate(dtype, device) * 1e-12
        results["bf16_matrix_tflop_s"] = matrix_rate(torch.bfloat16, device) * 1e-12
        results["copy_gb_s"] = copy_bandwidth(device) * 1e-9
        say(f"8192 x 8192 x 8192: {results['matrix_tflop_s']:.0f} TFLOP/s in {name}, {results['bf16_matrix_tflop_s']:.0f} in "
            f"bfloat16; copy {results['copy_gb_s']:.0f} GB/s")
    model = Model(config, args.batch, args.prompt_tokens, dtype, device)
    attentions, experts = candidates(config, dtype, device, args)
    reference = model.run(model.parts(attentions[-1], experts[0]))[0].float().cpu()
    if not bool(torch.isfinite(reference).all()):
        raise Error("found logits that are not finite; try another --dtype")
    for mode in args.modes:
        try:
            results["modes"][mode] = run_mode(mode, model, reference, args)
        except Exception as problem:  # pylint: disable=broad-except
            results["modes"][mode] = {"failed": short(problem)}
            say(f"  {mode:8} failed, going on: {short(problem)}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
            file.write("\n")
    for mode, found in results["modes"].items():
        if "failed" in found:
            say(f"{mode:8} failed: {found['failed']}")
        else:
            say(f"{mode:8} P50 {found['p50_us']:.1f} us, mean {found['mean_us']:.1f}, max {found['max_us']:.1f}: attention "
                f"{found['attention']}, experts {found['experts']}")
    return 1 if any("failed" in found for found in results["modes"].values()) else 0


def main():
    args = parse_arguments()
    if torch is None:
        sys.exit(f"error: found no PyTorch ({missing}), expected 2.5 or later; 2.11 is what this was written for")
    torch.set_grad_enabled(False)
    common.raise_recompile_limit()
    try:
        return bench(args)
    except (Error, OSError) as problem:
        sys.exit(f"error: {problem}")


if __name__ == "__main__":
    sys.exit(main())
