#!/usr/bin/env python3
"""Times whole greedy requests of a Grok-family model in PyTorch, with random weights, as a baseline for grokrun's requests.

A request is BATCH prompts of --prompt-tokens ids, other ones each time, and --new-tokens new ids for each row. Its time is
what a caller sees, by the host's clock: from the ids in the host's memory to all new ids there. The host copies the ids to
the device, replays the graph of the prefill and, for every further id, the graph of a step, and waits once, at the end:
ids, position and list of new ids are kept on the device, by kernels of the graphs. Modes:
  graph    plain PyTorch, captured in CUDA graphs
  compile  torch.compile of the parts of prefill and step, captured in CUDA graphs
prefill_bench.py and decode_bench.py have the prefill and the step, and how the fastest way of each is found.
Two things are as good for PyTorch as they can be:
  The cache has a place for every position, and a step hides those that follow its own: one sum more, which compiled fuses,
  and for 512 + 64 ids 6 % more of the cache read than needed. Cutting it to size would take a graph for every position.
  The experts' tokens are padded to the largest count in any of the run's prompts, which no server knows beforehand. The
  loop over experts isn't tried: a graph can't hold counts that change.
The time of the first id is the request's less what the device spent after it, between two CUDA events.
"""
import gc
import statistics
import sys
import time

import decode_bench as decode
import prefill_bench as prefill
from decode_bench import Error, percentile

try:
    import torch
except ImportError:  # --help works without
    torch = None

MODES = ("graph", "compile")
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
WARM_UP = 5


class Steps(decode.Model):
    """Steps at any position; what follows it in the cache is hidden."""

    masked = True


def keep(ids, next_ids, position, new, tokens):
    """Makes the ids of a prefill or step the next step's, and notes them."""
    new.index_copy_(1, position - (tokens - 1), ids.unsqueeze(1))
    next_ids.copy_(ids)
    position.add_(1)


class Request:
    """A prefill and a step with the parts of their fastest ways, and the buffers between them."""

    def __init__(self, steps, prompts, prefill_parts, step_parts, args, compiled):
        self.steps, self.prompts, self.count, self.tokens = steps, prompts, args.new_tokens, args.prompt_tokens
        self.prefill_parts, self.step_parts = prefill_parts, step_parts
        self.keep = torch.compile(keep, fullgraph=True, dynamic=False) if compiled else keep
        self.cuda = steps.device.type == "cuda"
        self.staged = torch.zeros(steps.batch, self.tokens, dtype=torch.int64, pin_memory=self.cuda)
        self.result = torch.zeros(steps.batch, self.count, dtype=torch.int64, pin_memory=self.cuda)
        self.new = torch.zeros_like(self.result, device=steps.device, pin_memory=False)
        self.prefill()
        self.step()
        self.replay_prefill, self.replay_step = self.prefill, self.step
        if self.cuda:
            self.events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            self.replay_prefill = decode.capture(self.prefill, 2)  # each begins again at the first position
            steps.position.fill_(self.tokens)
            self.replay_step = decode.capture(self.step, min(3, self.count - 1))  # each goes one on; the last has to fit

    def prefill(self):
        self.prompts.sort_again()
        self.first = self.prompts.run(self.prefill_parts)  # logits and ids; captured, every replay writes there
        self.steps.position.fill_(self.tokens - 1)
        self.keep(self.first[1], self.steps.ids, self.steps.position, self.new, self.tokens)

    def step(self):
        self.last = self.steps.step(self.step_parts)
        self.keep(self.last[1], self.steps.ids, self.steps.position, self.new, self.tokens)

    def run(self, ids):
        """(seconds, seconds until the first id) of a request; its ids are in result."""
        begin = time.perf_counter()
        self.staged.copy_(ids)
        self.prompts.ids.copy_(self.staged, non_blocking=True)
        self.replay_prefill()
        first = time.perf_counter()
        if self.cuda:
            self.events[0].record()
        for _ in range(self.count - 1):
            self.replay_step()
        self.result.copy_(self.new, non_blocking=True)
        if not self.cuda:
            return time.perf_counter() - begin, first - begin
        self.events[1].record()
        self.events[1].synchronize()
        seconds = time.perf_counter() - begin
        return seconds, seconds - self.events[0].elapsed_time(self.events[1]) * 1e-3

    def check(self, ids, prefill_parts):
        """The relative errors of the first and the last logits against eager ones, whose steps get the ids chosen here."""
        steps = self.steps
        self.run(ids)
        new, mine = self.result.clone().to(steps.device), [out[0].float().cpu() for out in (self.first, self.last)]
        for out, column in ((self.first, 0), (self.last, -1)):
            if not torch.equal(out[1], new[:, column]):
                raise Error("found other ids than the step chose")
        theirs = self.prompts.run(prefill_parts)[0].float().cpu()
        errors = [decode.difference(mine[0], theirs)]
        plain = steps.plain()
        for i in range(self.count - 1):
            steps.ids.copy_(new[:, i])
            steps.position.fill_(self.tokens + i)
            theirs = steps.step(plain)[0]
        errors.append(decode.difference(mine[1], theirs.float().cpu()))
        if not max(errors) < 0.5:
            raise Error(f"the logits differ from an eager request's by {errors[0]:.2g} (first id) and {errors[1]:.2g} (last), "
                        "relative")
        return errors


def run_mode(mode, steps, prompts, rows, drawn, args):
    if mode == "compile":
        decode.raise_recompile_limit()
    steps.position.fill_(args.context - 1)  # as many positions as a step may see, over what the cache holds
    steps.ids.copy_(rows[0])
    search = decode.Search(steps, mode, rows, steps.step(steps.plain())[0].float().cpu(), args)
    step = search.find(*decode.candidates(steps.config, mode, args.batch, steps.dtype, steps.device, args))
    fill = prefill.find(mode, prompts, prefill.reference_logits(prompts), args)
    request = Request(steps, prompts, fill.parts, step.parts, args, mode == "compile")
    errors = request.check(drawn[-1], prompts.parts("matmul", "loop"))
    for ids in drawn[args.requests:]:
        request.run(ids)
    gc.collect()
    gc.disable()
    try:
        seconds, first = zip(*[request.run(ids) for ids in drawn[:args.requests]])
    finally:
        gc.enable()
    each = [(a - b) / (args.new_tokens - 1) for a, b in zip(seconds, first)]
    found = {"logit_differences": errors, "prefill": fill.choice, "step": step.choice}
    for name, values in (("", seconds), ("first_id_", first), ("each_id_", each)):
        values = [value * 1e6 for value in values]
        found.update({f"{name}{quantile}_us": percentile(values, share) for quantile, share in QUANTILES.items()})
        found.update({f"{name}max_us": max(values), f"{name}mean_us": statistics.mean(values),
                      f"{name}deviation_us": statistics.pstdev(values)})
    found["request_times_us"] = [value * 1e6 for value in seconds]
    return found


def table(results):
    lines = ["", f"{results['config']}, batch {results['batch']}, {results['prompt_tokens']} + {results['new_tokens']} ids, "
             f"{results['dtype']}, {results['requests']} requests"]
    for mode, found in results["modes"].items():
        if "failed" in found:
            lines.append(f"{mode:8} failed: {found['failed']}")
            continue
        for title, name in (("request", ""), ("first id", "first_id_"), ("each id", "each_id_")):
            numbers = [f"P{100 * share:g} {found[f'{name}{quantile}_us']:.1f}" for quantile, share in QUANTILES.items()]
            lines.append(f"{mode:8} {title:9}" + ", ".join(numbers) + f", max {found[f'{name}max_us']:.1f}, mean "
                         f"{found[f'{name}mean_us']:.1f}, deviation {found[f'{name}deviation_us']:.1f} us")
        for name in ("prefill", "step"):
            lines.append(f"{mode:8} {name:9}" + ", ".join(f"{key} {value}" for key, value in found[name].items() if value))
    return "\n".join(lines)


def parse_arguments():
    parser = decode.make_parser(__doc__, 1, MODES, MODES[:1])
    parser.add_argument("--prompt-tokens", type=int, default=512, metavar="N", help="ids of a row's prompt (default 512)")
    parser.add_argument("--new-tokens", type=int, default=64, metavar="N", help="ids to generate, 2 or more (default 64)")
    parser.add_argument("--requests", type=int, default=100, metavar="N", help="timed requests a mode (default 100)")
    parser.add_argument("--compile-setting", choices=decode.SETTINGS, help="torch.compile's mode for the step: use only this")
    parser.set_defaults(experts=None, attention=None)  # options of the searches
    args = decode.checked(parser, MODES, "batch", "prompt_tokens", "requests", "layers")
    if args.new_tokens < 2:
        parser.error(f"found --new-tokens {args.new_tokens}, expected 2 or more")
    args.context = -(-(args.prompt_tokens + args.new_tokens) // 8) * 8  # products of odd widths would be slow
    return args


def bench(args):
    what = f"requests of {args.prompt_tokens} + {args.new_tokens} ids"
    shared = decode.begin(args, what, args.context, prompt_tokens=args.prompt_tokens, new_tokens=args.new_tokens,
                          requests=args.requests)
    steps, rows, _ = decode.prepare(args, *shared, Steps)
    config, _, _, results = shared
    # the timed requests, some to warm up, and one to check
    drawn = torch.randint(0, config.V, (args.requests + WARM_UP + 1, args.batch, args.prompt_tokens)).unbind(0)
    prompts = prefill.Model(steps, args.prompt_tokens)
    prompts.expect(drawn)
    return decode.each_mode(args, results, lambda mode: run_mode(mode, steps, prompts, rows, drawn, args), table)


if __name__ == "__main__":
    sys.exit(decode.main(parse_arguments(), bench))
