"""What is said is stripped of all that str.strip knows as blanks, on both sides."""
import json
import subprocess
import sys


def ids(grokrun, bundle, text):
    done = subprocess.run([grokrun, "generate", bundle, "--device", "cpu", "-n", "0", "--json", "--chat", text],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["prompt_ids"]


def main(grokrun, bundle):
    blanks = "".join(c for c in map(chr, range(1, 0x110000)) if c.isspace())
    plain = ids(grokrun, bundle, "a")
    if ids(grokrun, bundle, blanks + "a" + blanks) != plain:
        sys.exit(f"blanks were kept, expected none of {blanks!r}")
    for c in "\u180e\u200b\u2060\ufeff":  # they look like blanks
        if ids(grokrun, bundle, c + "a") == plain:
            sys.exit(f"{c!r} was stripped")


if __name__ == "__main__":
    main(*sys.argv[1:])
