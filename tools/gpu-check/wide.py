"""The checks of a wide model: the GPU against the CPU, with the same synthetic weights."""
import json
import os
import shutil

import cases
from checks import Check, filler, unpack
from golden import relative_error
from machine import Script

LENGTHS = (12, 3, 9, 1, 7, 12, 5, 10)  # of a batch's rows


class WideCheck(Check):
    def run(self):
        self.attempt("logits", self.check_logits)
        return self

    def check_logits(self):
        """Every position through prefill, where the bundle has it, and through decode."""
        with open(self.case.wide_config) as file:
            vocab = json.load(file)["vocab_size"]
        filled = unpack(self.machine, self.folder, self.case, None)
        packed = unpack(self.machine, self.folder, self.case, f"synthetic:{cases.SYNTHETIC_SEED}", self.case.name + "-packed")
        script = Script()
        rows = script.batch(*[(filler(vocab, length, row), 0) for row, length in enumerate(LENGTHS[:self.case.max_batch])])
        reference = self.machine.replay(packed, script, device="cpu")[1]
        ways = {"logits by decode": ("--decode-from", "0")} | ({} if self.case.coded else {"logits": ()})
        for what, flags in ways.items():
            logits = self.machine.replay(filled, script, *flags)[1]
            errors = [relative_error(value, expected) for row in rows
                      for value, expected in zip(logits.rows(f"logits.{row}"), reference.rows(f"logits.{row}"))]
            self.report_errors(what, errors, self.case.cpu_limit)
        for bundle in (filled, packed):
            shutil.rmtree(os.path.dirname(bundle))
