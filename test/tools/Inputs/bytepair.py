"""A second implementation of tokenizer.tok.json, slow and by hand, against `grokrun generate --json`."""
import json
import os
import subprocess
import sys
import unicodedata

TEXTS = [
    "Hello, world", "the thing in the inn", "I'll we've IT'S don't 'tis x'lls", "1234 56.78 ١٢ Ⅷ x9y", "a  b   c    d",
    "tabs\tand\n\nlines\r\n  \n end  ", "   leading", "trailing   ", "日本語 日本 é É naïve", "emoji 👍🏽 and \u00a0 nbsp",
    "punct!!!\n\n?? (x) -- [y]\n", "word\u2028sep\u3000wide", "'S 'ſ 'RE", "<|eos|> is text here", "\n", " ", "aaaaaaaaaa" * 50,
]


def is_letter(c):
    return unicodedata.category(c).startswith("L")


def is_number(c):
    return unicodedata.category(c).startswith("N")


def is_space(c):
    return c in "\t\n\v\f\r\x85" or unicodedata.category(c) in ("Zs", "Zl", "Zp")


def run_of(text, at, predicate):
    end = at
    while end < len(text) and predicate(text[end]):
        end += 1
    return end


def piece_end(text, at):
    """Where the piece that begins at `at` ends: the first alternative of the pattern that matches."""
    if text[at] == "'":
        for tail in ("s", "t", "re", "ve", "m", "ll", "d"):
            found = text[at + 1:at + 1 + len(tail)]
            if found.casefold() == tail:
                return at + 1 + len(found)
    start = at + (text[at] not in "\r\n" and not is_letter(text[at]) and not is_number(text[at]))
    if run_of(text, start, is_letter) > start:
        return run_of(text, start, is_letter)
    if is_number(text[at]):
        return at + 1
    start = at + (text[at] == " ")
    end = run_of(text, start, lambda c: not is_space(c) and not is_letter(c) and not is_number(c))
    if end > start:
        return run_of(text, end, lambda c: c in "\r\n")
    blank = run_of(text, at, is_space)
    lines = [i for i in range(at, blank) if text[i] in "\r\n"]
    if lines:
        return lines[-1] + 1
    if blank == len(text) or blank == at + 1:
        return blank
    return blank - 1


def merge(piece, ranks):
    parts = [piece[i:i + 1] for i in range(len(piece))]
    while True:
        pairs = [(ranks.get(parts[i] + parts[i + 1]), i) for i in range(len(parts) - 1)]
        pairs = [p for p in pairs if p[0] is not None]
        if not pairs:
            return [ranks[p] for p in parts]
        _, i = min(pairs)
        parts[i:i + 2] = [parts[i] + parts[i + 1]]


def encode(text, ranks):
    ids, at = [], 0
    while at < len(text):
        end = piece_end(text, at)
        piece = text[at:end].encode()
        ids += [ranks[piece]] if piece in ranks else merge(piece, ranks)
        at = end
    return ids


def main(grokrun, bundle):
    with open(os.path.join(bundle, "tokenizer.tok.json")) as file:
        ranks = {bytes(t["bytes"]): t["token"] for t in json.load(file)["regular_tokens"]}
    for text in TEXTS:
        done = subprocess.run([grokrun, "generate", bundle, "--device", "cpu", "--prompt", text, "-n", "0", "--json"],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        found, expected = json.loads(done.stdout)["prompt_ids"], encode(text, ranks)
        if found != expected:
            sys.exit(f"{text!r}: found {found}, expected {expected}")
    print(f"{len(TEXTS)} texts agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
