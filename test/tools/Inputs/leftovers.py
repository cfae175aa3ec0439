"""Puts what a killed run left beside an output again, in each state that a kill can leave it in, and runs its command.

leftovers.py LEFT OUTPUT REFERENCE COMMAND... Prints "STATE: what the command said; which leftovers are there still".
"""
import fcntl
import os
import re
import shutil
import subprocess
import sys

left, output, reference, command = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
GONE = 1 << 30  # above every number of a process


def journal(place):
    return os.path.join(place, "packing")


def blob(place):
    return os.path.join(place, "weights.blob")


def only(place, *names):
    for name in set(os.listdir(place)) - set(names):
        os.remove(os.path.join(place, name))


def without_notes(place):
    with open(journal(place), "r+b") as file:
        file.truncate(len(file.readline()))


def with_key_alone(place):
    only(place, "packing")
    without_notes(place)


def with_empty_journal(place):
    only(place, "packing")
    os.truncate(journal(place), 0)


def without_journal(place):
    os.remove(journal(place))


def of_another_key(place):
    without_notes(place)
    with open(journal(place), "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(b"1" if first == b"0" else b"0")


STATES = {
    "with notes": [lambda place: None],
    "without notes": [without_notes],
    "before the blob": [with_key_alone],
    "before the key": [with_empty_journal],
    "empty": [only],
    "without its blob": [lambda place: os.remove(blob(place))],
    "with its blob cut": [lambda place: os.truncate(blob(place), os.path.getsize(blob(place)) - 1)],
    "several": [without_notes, lambda place: None, only, with_key_alone],
    "another key": [of_another_key],
    "another's file": [without_journal],
}


def put(number, change):
    place = f"{output}.tmp-{number}"
    shutil.copytree(left, place)
    change(place)
    return place


def run(state, places):
    shutil.rmtree(output, ignore_errors=True)
    errors = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
    with open(f"{output}/manifest.json") as one, open(f"{reference}/manifest.json") as other:
        if one.read() != other.read():
            sys.exit(f"{state}: another bundle than {reference}")
    said = ["going on"] if "going on at" in errors else ["anew"]
    said += re.findall(r"warning: .*: (found [^,;]*)", errors)
    there = [place for place in places if os.path.exists(place)]
    print(f"{state}: {', '.join(said)}; {len(there)} of {len(places)} there")
    for place in there:
        shutil.rmtree(place)


for state, changes in STATES.items():
    run(state, [put(GONE + i, change) for i, change in enumerate(changes)])
run("of a number in use", [put(os.getpid(), without_notes)])
place = put(GONE, lambda place: None)
lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
fcntl.flock(lock, fcntl.LOCK_EX)
run("of a running process", [place])
