"""The bundles that are checked: every test model, both PTX paths, both 16-bit types, weights of 8 bits, and the options
that must not change a result; and models as wide as real ones, whose products the test models are too narrow for."""
import dataclasses
import os

MODELS = ("tiny-hash", "tiny-top2", "grok1-mha-top1", "hash-offset", "grok2-residual", "grok1-deep")
TRAINED = ("tiny-hash", "tiny-top2")
WIDE = ("wide-hash", "wide-top2")  # one layer of the reference model, and of one as wide as Grok-1; synthetic weights
WIDE_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
PATHS = ("sm90a", "sm80")
DTYPES = ("bf16", "f16")
CODES = {"sm90a": ("int8", "fp8"), "sm80": ("int8",)}  # types of 8 bits; operands are bf16, the models' type
SYNTHETIC_SEED = 1

# Median relative error of a position's logits that 16-bit activations may have: (f16, bf16).
SINGLE_LIMITS = {
    "tiny-hash": (5e-3, 2e-2),
    "tiny-top2": (5e-3, 2e-2),
    "grok1-mha-top1": (5e-3, 2e-2),
    "hash-offset": (5e-3, 2e-2),
    "grok2-residual": (1.5e-2, 5e-2),
    "wide-hash": (5e-3, 2e-2),
    "wide-top2": (5e-3, 2e-2),
}
# The same of weights of 8 bits, which are other weights than the reference's: (int8, fp8).
CODES_LIMITS = {model: (5e-2, 2e-1) for model in SINGLE_LIMITS} | {"grok2-residual": (1.5e-1, 5e-1)}
SPLIT_LIMITS = {"grok1-deep": 1e-2}  # twelve random layers amplify any error: chaotic in 16 bits


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    path: str  # of PATHS
    dtype: str
    activations: str = "single"
    variant: str = ""  # "group", "keep", "synthetic", or "" for none
    max_batch: int = 8  # a bundle for one row has a kernel of its own

    @property
    def name(self):
        split = "split" if self.activations == "split" else ""
        alone = "alone" if self.max_batch == 1 else ""
        return "-".join(filter(None, (self.model, self.path, self.dtype, split, self.variant, alone)))

    @property
    def wide(self):
        return self.model in WIDE

    @property
    def wide_config(self):
        return os.path.join(WIDE_FOLDER, f"{self.model}.json")

    def config(self, models):
        """What to compile; `models`: the folder of the checkpoints."""
        return self.wide_config if self.wide else os.path.join(models, self.model)

    @property
    def archive(self):
        """Where prepare puts it, from its folder."""
        return f"bundles/{self.name}.tar.gz"

    @property
    def base(self):
        """The case that differs only in the variant."""
        return dataclasses.replace(self, variant="")

    @property
    def limit(self):
        """Of the median relative error; None: reported only."""
        if self.coded:
            limits = CODES_LIMITS.get(self.model)
            return limits and limits[self.dtype == "fp8"]
        return self.cpu_limit

    @property
    def cpu_limit(self):
        """The same against the CPU executor, which has the same weights."""
        if self.activations == "split":
            return SPLIT_LIMITS.get(self.model)
        limits = SINGLE_LIMITS.get(self.model)
        return limits and limits[self.dtype != "f16"]

    @property
    def coded(self):
        """Weights have 8 bits."""
        return self.dtype not in DTYPES

    def compile_flags(self):
        flags = ["--dtype", self.dtype, "--activations", self.activations, "--max-batch", str(self.max_batch)]
        flags += ["--weights", f"synthetic:{SYNTHETIC_SEED}" if self.variant == "synthetic" or self.wide else "none"]
        if self.variant == "group":
            flags += ["--sm-policy", "group"]
        if self.variant == "keep":
            flags += ["--keep-unreachable-experts"]
        return flags


def all_cases():
    cases = []
    for path in PATHS:
        cases += [Case(m, path, d) for m in MODELS for d in DTYPES]
        cases += [Case("grok1-deep", path, d, "split") for d in DTYPES]
        cases += [Case(m, path, "bf16", "split") for m in MODELS if m != "grok1-deep"]  # for information
        cases += [Case(m, path, "bf16", variant="group") for m in ("tiny-hash", "hash-offset")]
        cases += [Case("tiny-hash", path, "bf16", variant="keep")]
        cases += [Case(m, path, "bf16", variant="synthetic") for m in ("tiny-hash", "tiny-top2", "grok2-residual")]
        cases += [Case(m, path, d) for d in CODES[path] for m in MODELS]
        cases += [Case(m, path, d, variant="synthetic") for d in CODES[path] for m in ("tiny-hash", "grok2-residual")]
        for rows in (1, 8):
            cases += [Case("wide-hash", path, d, max_batch=rows) for d in ("f16", *CODES[path])]
            cases += [Case("wide-top2", path, d, max_batch=rows) for d in ("bf16", *CODES[path])]
    return cases


def target_json(path, h200):
    """The target of a path, from the H200's description: sm_80 code for a part with as many SMs runs there too, but its
    stream drives the hand-overs' words out of L2."""
    if path == "sm90a":
        return h200
    return {**h200, "name": "h200-sm80", "sm": 80, "arch": "sm_80", "ptx_version": "7.1", "min_driver": 11010,
            "shared_bytes_per_block": 166912, "hand_over_stream_us": 2.2}
