"""Compiles with tokenizers in which one thing is not as it should be, and prints what is said."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/checkpoints"))
import tokjson

GOOD = tokjson.content()
REGULAR, SPECIAL = GOOD["regular_tokens"], GOOD["special_tokens"]
CASES = {
    "no-special": {"special_tokens": None},
    "no-list": {"regular_tokens": {}},
    "no-bytes": {"regular_tokens": [{"token": 5}]},
    "byte-256": {"regular_tokens": [{"bytes": [256], "token": 5}]},
    "no-content": {"regular_tokens": [{"bytes": [], "token": 5}]},
    "id-too-large": {"regular_tokens": [{"bytes": [1], "token": 289}]},
    "id-twice": {"special_tokens": SPECIAL + [{"bytes": [60], "token": 5}]},
    "bytes-twice": {"regular_tokens": REGULAR[:-1] + [{"bytes": [65], "token": 288}]},
    "text-twice": {"special_tokens": SPECIAL[:4] + [{"bytes": SPECIAL[0]["bytes"], "token": 4}]},
    "byte-missing": {"regular_tokens": REGULAR[1:]},
    "word-split": {"word_split": "V2"},
    "pattern": {"pat_str": "(a"},
    "pattern-too-long": {"pat_str": "()" * 5000},
    "allowed": {"default_allowed_special": [[60]]},
    "vocabulary": {"vocab_size": 301},
}

def without(*texts):
    gone = [list(text.encode()) for text in texts]
    return {"special_tokens": [token for token in SPECIAL if token["bytes"] not in gone]}


# What still compiles, with a warning.
ODD = {
    "no-end": without("<|eos|>"),
    "no-stops": without("<|eos|>", "<|separator|>"),
}


def compile_with(grokc, folder, changes):
    tokjson.write(os.path.join(folder, "tokenizer.tok.json"), **changes)
    return subprocess.run([grokc, "compile", "--config", folder, "--weights", "none", "--target", "cpu", "-o", "out.grok"],
                          capture_output=True, text=True)


def main(grokc, folder):
    for name, changes in CASES.items():
        done = compile_with(grokc, folder, changes)
        if done.returncode != 1 or os.path.exists("out.grok"):
            sys.exit(f"{name}: exit status {done.returncode}, expected 1 and no bundle")
        print(f"{name}: {done.stderr.strip()}")
    for name, changes in ODD.items():
        done = compile_with(grokc, folder, changes)
        if done.returncode:
            sys.exit(f"{name}: exit status {done.returncode}, expected 0")
        for line in done.stderr.splitlines():
            if "tokenizer" in line:
                print(f"{name}: {line}")


if __name__ == "__main__":
    main(*sys.argv[1:])
