"""The checks of one bundle."""
import dataclasses
import hashlib
import json
import os
import re
import shutil
import statistics

import cases
from golden import largest_error, relative_error
from machine import Failure, Script

RUNS = 100
SLOT_SHIFTS = (1, 67)  # every slot on another SM
LOSS_LIMIT = 0.005  # relative
CODES_LOSS_LIMIT = 0.02  # the same of weights of 8 bits
ABSENT_SLOT = 3     # computes a part of every model
LONG_ROW = 200      # positions: several blocks of the KV cache
PASSES = (1, 7, 64)  # tokens of a prefill pass; the goldens' rows and batches span several
DECODED_FROM = 13    # position of a row that prefill and decode share
FILLER_LENGTHS = (1, 9, 61, 17, 70, 5, 33)


@dataclasses.dataclass
class Result:
    what: str
    value: str
    limit: str
    ok: object  # True, False, or None: reported only


def filler(vocab, length, seed):
    """Ids that look arbitrary."""
    return [(seed * 7919 + i * 104729 + i * i * 31) % vocab for i in range(length)]


def unpack(machine, folder, case, weights, place=None):
    """A bundle with its weights filled in, in a folder of its own."""
    directory = os.path.join(machine.work, place or case.name)
    shutil.rmtree(directory, ignore_errors=True)
    shutil.unpack_archive(os.path.join(folder, case.archive), directory)
    bundle = os.path.join(directory, case.name + ".grok")
    if weights:
        machine.call("pack", bundle, "--weights", weights)
    return bundle


class Check:
    """Runs everything on one bundle. `results`: what came out."""

    def __init__(self, machine, folder, case):
        self.machine, self.folder, self.case = machine, folder, case
        self.results, self.digest = [], None  # of the golden logits, for comparison

    def report(self, check, value, limit, ok):
        self.results.append(Result(f"{self.case.name} {check}", value, limit, ok))

    def report_errors(self, check, errors, limit):
        median = statistics.median(errors)
        self.report(check, f"{median:.1e} (max {max(errors):.1e})", f"{limit:.1e}" if limit else "-",
                    median <= limit if limit else None)

    def attempt(self, check, body):
        """Runs one part; what fails there is its result. False if it could not be run to its end."""
        try:
            body()
        except Failure as failure:
            self.report(check, str(failure), "", False)
            return False
        return True


class BundleCheck(Check):
    """The checks of a test model, which has reference results."""

    def __init__(self, machine, folder, models, case, golden):
        super().__init__(machine, folder, case)
        self.golden = golden
        self.weights = os.path.join(models, case.model)
        self.different = []  # what should have been the same bits, or ids
        with open(os.path.join(self.weights, "config.json")) as file:
            config = json.load(file)
        self.vocab, self.max_seq = config["vocab_size"], min(config["max_position_embeddings"], 8192)

    def run(self):
        if self.case.variant == "synthetic":
            self.attempt("fill", self.check_fill)
            return self
        try:
            self.bundle = unpack(self.machine, self.folder, self.case, self.weights)
        except Failure as failure:
            self.report("pack", str(failure), "", False)
            return self
        if self.attempt("logits", self.check_logits):
            if not self.case.coded:  # prefill reads 16-bit weights
                self.attempt("prefill", self.check_prefill)
            self.check_rest()
        shutil.rmtree(os.path.dirname(self.bundle))
        return self

    def check_rest(self):
        self.attempt("generate", self.check_generation)
        self.report("identity", "different: " + ", ".join(self.different) if self.different else "equal",
                    "bitwise", not self.different)
        if self.golden.loss is not None and self.case.variant == "":
            self.attempt("loss", self.check_loss)
        if self.machine.device != "cpu" and self.case.variant == "":
            self.attempt("long", self.check_long)
            self.attempt("watchdog", self.check_watchdog)

    def check_logits(self):
        """Against the goldens; and the same request again and again, and in every row of a batch of different lengths."""
        script = Script()
        golden = [script.alone(ids) for ids, _ in self.golden.logits]
        request = self.golden.logits[0][0][:12]
        places = [script.batch(*[(request if row == place else filler(self.vocab, FILLER_LENGTHS[(row + place) % 7], row), 0)
                                 for row in range(8)])[place] for place in range(8)]
        runs = [script.alone(request) for _ in range(RUNS)]
        stepped = script.alone(*self.prompts()[0])
        long_row = script.alone(filler(self.vocab, LONG_ROW, 5))
        ids, tensors = self.machine.replay(self.bundle, script)
        self.stepped, self.long = ids[stepped], tensors.rows(f"logits.{long_row}")
        errors, self.largest = [], []
        for row, (_, reference) in zip(golden, self.golden.logits):
            logits = tensors.rows(f"logits.{row}")
            errors += [relative_error(logits[p], r) for p, r in reference.items()]
            self.largest.append(max(largest_error(logits[p], r) for p, r in reference.items()))
        self.digest = hashlib.sha256(b"".join(tensors.bytes(f"logits.{row}") for row in golden)).hexdigest()
        if self.case.variant == "":
            self.report_errors("logits", errors, self.case.limit)
        expected = tensors.bytes(f"logits.{runs[0]}")
        for shift in SLOT_SHIFTS:
            script = Script()
            row = script.alone(request)
            shifted = self.machine.replay(self.bundle, script, environment={"GROK_SLOT_SHIFT": str(shift)})[1]
            self.different += [f"slots shifted by {shift} SMs"] if shifted.bytes(f"logits.{row}") != expected else []
        self.different += [f"run {i}" for i, row in enumerate(runs) if tensors.bytes(f"logits.{row}") != expected]
        self.different += [f"row {i} of 8" for i, row in enumerate(places) if tensors.bytes(f"logits.{row}") != expected]

    def golden_errors(self, tensors, rows):
        return [relative_error(tensors.rows(f"logits.{row}")[p], r)
                for row, (_, reference) in zip(rows, self.golden.logits) for p, r in reference.items()]

    def check_prefill(self):
        """The goldens' rows through decode, and through both; the same bits however the passes are cut; a row that is full."""
        script = Script()
        golden = [script.alone(ids) for ids, _ in self.golden.logits]
        batch = script.batch(*[(filler(self.vocab, length, 3), 0) for length in (1, 40, LONG_ROW, 17)])
        for what, position in (("decode", 0), ("both", DECODED_FROM)):
            tensors = self.machine.replay(self.bundle, script, "--decode-from", str(position))[1]
            if self.case.variant == "":
                self.report_errors(f"logits by {what}", self.golden_errors(tensors, golden), self.case.limit)
        whole = self.machine.replay(self.bundle, script)[1]
        for tokens in PASSES:
            cut = self.machine.replay(self.bundle, script, "--prefill-tokens", str(tokens))[1]
            self.different += [f"row {row} in passes of {tokens}" for row in (*golden, *batch)
                               if cut.bytes(f"logits.{row}") != whole.bytes(f"logits.{row}")]
        script = Script()
        full = filler(self.vocab, self.max_seq, 11)
        rows = [script.alone(full[:-1], 1), *script.batch((full[:5], 2), (full[:-1], 1))]
        ids, _ = self.machine.replay(self.bundle, script, logits=False)
        self.different += ["the row that is full"] if ids[rows[0]] != ids[rows[2]] else []
        script = Script()
        script.alone(full)
        self.machine.replay(self.bundle, script, logits=False)

    def prompts(self):
        """(prompt, number to generate) of up to 8 rows of different lengths."""
        if self.golden.cases:
            return [(case["prompt_ids"], len(case["greedy_ids"])) for case in self.golden.cases]
        ids = self.golden.logits[0][0]
        return [(ids[:length], 5 + 3 * row) for row, length in enumerate((1, 3, 8, 13, 20, 27, 34, 40))]

    def check_generation(self):
        """Ids must not depend on the other rows, nor on whether the device steps alone or is launched for every position."""
        prompts = self.prompts()
        script = Script()
        alone = [script.alone(ids, count) for ids, count in prompts]
        together = script.batch(*prompts)
        ids, _ = self.machine.replay(self.bundle, script, logits=False)
        self.different += [f"ids of row {i}" for i, (a, b) in enumerate(zip(alone, together)) if ids[a] != ids[b]]
        self.different += ["ids position by position"] if self.stepped != ids[alone[0]] else []
        self.different += [f"number of ids of row {i}" for i, (_, n) in enumerate(prompts) if len(ids[alone[i]]) != n]
        if self.golden.cases and self.case.variant == "":
            self.check_greedy([ids[row] for row in alone])

    def check_greedy(self, generated):
        """The ids of a continuation must be the golden ones if no error that was seen can close the smallest margin."""
        required = agree = 0
        wrong = []
        for i, (case, ids) in enumerate(zip(self.golden.cases, generated)):
            required += case["min_margin"] > 2 * self.largest[i]
            agree += ids == case["greedy_ids"]
            if ids != case["greedy_ids"] and case["min_margin"] > 2 * self.largest[i]:
                wrong.append(str(i))
        first = self.golden.cases[0]
        out = self.machine.call("generate", self.bundle, "--ids", ",".join(map(str, first["prompt_ids"])), "-n",
                                str(len(first["greedy_ids"])), "--ignore-eos", "--json", "--device", self.machine.device)
        if json.loads(out)["ids"] != generated[0]:
            wrong.append("grokrun generate")
        value = f"{agree} of {len(generated)} equal" + (f", wrong: {', '.join(wrong)}" if wrong else "")
        self.report("greedy", value, f"{required} by margin", not wrong)

    def check_loss(self):
        path = self.bundle + ".held-out"
        with open(path, "w") as file:
            file.write(" ".join(map(str, self.golden.held_out)))
        out = self.machine.call("eval", self.bundle, "--ids", path, "--json", "--device", self.machine.device)
        loss = json.loads(out)["nll_per_token"]
        error = abs(loss / self.golden.loss - 1)
        limit = CODES_LOSS_LIMIT if self.case.coded else LOSS_LIMIT
        self.report("loss", f"{loss:.4f} ({100 * error:.3f} %)", f"{100 * limit} %", error <= limit)

    def check_long(self):
        """A longer row than the goldens', against the CPU."""
        script = Script()
        row = script.alone(filler(self.vocab, LONG_ROW, 5))
        reference = self.machine.replay(self.bundle, script, device="cpu")[1].rows(f"logits.{row}")
        errors = [relative_error(self.long[p], reference[p]) for p in range(3, LONG_ROW, 7)]
        self.report_errors(f"{LONG_ROW} positions", errors, self.case.cpu_limit)

    def check_watchdog(self):
        """A slot that no block takes hands nothing over: the kernel must say who waits where, and the next one must run."""
        script = Script()
        row = script.alone(self.golden.logits[0][0][:3], 2)
        try:
            self.machine.replay(self.bundle, script, "--decode-from", "0", logits=False,
                                environment={"GROK_SLOT_ABSENT": str(ABSENT_SLOT)})
            message = "no error"
        except Failure as failure:
            message = str(failure)
        named = re.search(r"stuck for [0-9.]+ s in (phase \w+, slot \d+, layer \d+), step 0 \(exit 70\)", message)
        runs = len(self.machine.replay(self.bundle, script, "--decode-from", "0", logits=False)[0][row]) == 2
        self.report("watchdog", named[1] if named else message, "named", bool(named) and runs)

    def check_fill(self):
        """Weights generated on the device equal those that grokrun pack writes."""
        script = Script()
        script.alone(filler(self.vocab, 24, 3))
        seed = f"synthetic:{cases.SYNTHETIC_SEED}"
        filled = unpack(self.machine, self.folder, self.case, None)
        packed = unpack(self.machine, self.folder, self.case, seed, self.case.name + "-packed")
        a, b = (self.machine.replay(bundle, script)[1].bytes("logits.0") for bundle in (filled, packed))
        self.report("fill", "equal" if a == b else "different", "bitwise", a == b)
        for bundle in (filled, packed):
            shutil.rmtree(os.path.dirname(bundle))
