"""Gives every option and argument of every command that takes a value an empty one.

empty_values.py TOOL...

Options and arguments are those that --help lists. Prints a line for each command with how many were refused; whatever
ends otherwise than with status 1 and an error that names the option is shown and ends this with status 1.
"""
import pathlib
import re
import subprocess
import sys

LINE = re.compile(r"^  (\S+) (\S.*?)  ")  # "  --config DIR|FILE    what it is"
failures = 0


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def commands(tool):
    listed = run(tool, "--help").stdout.split("Subcommands:")[1]
    return re.findall(r"^  ([a-z]+)  ", listed, re.M)


def options(tool, command):
    """Name and whether it is required, of what takes a value."""
    found = []
    for line in run(tool, command, "--help").stdout.splitlines():
        match = LINE.match(line)
        if match and "," not in match[1]:
            found.append((match[1], "REQUIRED" in match[2]))
    return found


def given(name, value):
    return [name, value] if name.startswith("-") else [value]


for tool in sys.argv[1:]:
    for command in commands(tool):
        every = options(tool, command)
        for name, _ in every:
            others = [word for other, required in every if required and other != name for word in given(other, "1")]
            # Arguments before the options, as their order is theirs.
            words = given(name, "") + others if not name.startswith("-") else others + given(name, "")
            done = run(tool, command, *words)
            if done.returncode != 1 or not re.match(rf"error: {re.escape(name)}\b.*", done.stderr):
                failures += 1
                print(f"{command} {name}: status {done.returncode}: {done.stderr.strip()[:200]}")
        print(f"{pathlib.Path(tool).name} {command}: {len(every)}")
sys.exit(1 if failures else 0)
