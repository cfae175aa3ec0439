"""The prompt's ids are these texts, each but the last closed by the separator."""
import json
import os
import sys

import bytepair

SEPARATOR = 1


def main(bundle, output, *texts):
    with open(os.path.join(bundle, "tokenizer.tok.json")) as file:
        ranks = {bytes(t["bytes"]): t["token"] for t in json.load(file)["regular_tokens"]}
    expected = []
    for text in texts:
        expected += bytepair.encode(text.replace("\\n", "\n"), ranks) + [SEPARATOR]
    with open(output) as file:
        found = json.load(file)["prompt_ids"]
    if found != expected[:-1]:
        sys.exit(f"found {found}, expected {expected[:-1]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
