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
}


def main(grokc, folder):
    for number, (name, fill) in enumerate(CASES.items()):
        place = os.path.join(folder, str(number))
        os.makedirs(place)
        fill(place)
        subprocess.run([grokc, "compile", "--config", place, "--target", "cpu", "-o", place + ".grok"], check=True)
        print(f"{name}: compiled")


if __name__ == "__main__":
    main(*sys.argv[1:])
