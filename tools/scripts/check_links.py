#!/usr/bin/env python3
"""Checks that every relative link of every tracked Markdown file points at something that is there."""

import os
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s#]+)[^)]*\)")


def main():
    files = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout.split()
    broken = 0
    for name in files:
        with open(name, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                for link in LINK.findall(line):
                    if re.match(r"[a-z]+:", link):
                        continue
                    if not os.path.exists(os.path.join(os.path.dirname(name), link)):
                        print(f"error: {name}:{number}: found a link to '{link}', expected a file that is there", file=sys.stderr)
                        broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
