"""GGUF files whose metadata is odd but says nothing against the model."""
import os
import subprocess
import sys

import gguf_faults

CASES = {
    "cap of 30": gguf_faults.keys(grok__router_logit_softcapping=30.0),
    "yarn": gguf_faults.keys(grok__rope__scaling__type="yarn", grok__rope__scaling__factor=16.0),
    "factor 1": gguf_faults.keys(grok__rope__scaling__type="linear", grok__rope__scaling__factor=1.0),
    "scaling none": gguf_faults.keys(grok__rope__scaling__type="none"),
    "none of it": gguf_faults.keys(grok__attention__sliding_window=0, grok__expert_gating_func=1, grok__vocab_size=48,
                                   grok__expert_weights_scale=1.0, grok__attention__causal=1),
    "short context": gguf_faults.keys(grok__context_length=64),
    "unknown": gguf_faults.keys(grok__attention__sink="yes", grok__experts=["a"], **{"grok__new\x1b": 1, "other__key": 1}),
    "many": gguf_faults.keys(**{f"grok__new{i:02}": i for i in range(12)}),
}


def main(grokc, folder):
    for number, (name, fill) in enumerate(CASES.items()):
        place = os.path.join(folder, str(number))
        os.makedirs(place)
        fill(place)
        done = subprocess.run([grokc, "compile", "--config", place, "--target", "cpu", "-o", place + ".grok"],
                              check=True, capture_output=True, text=True)
        print(f"{name}: compiled", done.stderr.strip().replace(place + "/", ""))


if __name__ == "__main__":
    main(*sys.argv[1:])
