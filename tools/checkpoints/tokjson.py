"""Grok-2's tokenizer.tok.json with a small vocabulary: special tokens, every byte, and a few merges."""
import json

SPECIAL = ["<|pad|>", "<|separator|>", "<|eos|>", "<|reserved_3|>", "<|control1|>"]
MERGES = ["th", "he", "in", " t", "the", " the", "er", "ing", "Hu", "man", "Human", "As", "sis", "tant", "st", "an", "ant",
          "ll", "'ll", "ello", "Hello", "  ", "    ", "\n\n", "é", "日", "日本", "本"]


def content(first_byte=len(SPECIAL)):
    """Ids in the order of the lists; a merge is a token if its bytes are not one already."""
    tokens = [bytes([b]) for b in range(256)]
    tokens += [m.encode() for m in MERGES if m.encode() not in tokens]
    return {
        "word_split": "V1",
        "vocab_size": first_byte + len(tokens),
        "regular_tokens": [{"bytes": list(b), "token": first_byte + i} for i, b in enumerate(tokens)],
        "special_tokens": [{"bytes": list(s.encode()), "token": i} for i, s in enumerate(SPECIAL)],
        "default_allowed_special": [list(b"<|reserved_3|>")],
    }


def write(path, **changes):
    with open(path, "w") as file:
        json.dump({k: v for k, v in {**content(), **changes}.items() if v is not None}, file)
