"""Runs the compiler on checkpoints with one fault each, and prints what it says: "NAME: message"."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../tools/checkpoints"))


def run(grokc, folder, cases, weights="", options=(), grokrun=None):
    """`cases`: name to a function that fills a directory. Every one must fail and leave no bundle. With `grokrun`, its
    check must find something wrong as well."""
    bundle = os.path.join(folder, "out.grok")
    shutil.rmtree(bundle, ignore_errors=True)
    for name, fill in cases.items():
        place = os.path.join(folder, name)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        fill(place)
        done = subprocess.run([grokc, "compile", "--config", place, "--weights", os.path.join(place, weights), "--target",
                               "cpu", "-o", bundle, *options], capture_output=True, text=True)
        if done.returncode != 1:
            sys.exit(f"{name}: exit status {done.returncode}, expected 1\n{done.stderr}")
        if os.path.exists(bundle):
            sys.exit(f"{name}: left a bundle")
        if grokrun:
            checked = subprocess.run([grokrun, "check", place], capture_output=True, text=True)
            if checked.returncode != 1 or not checked.stderr.startswith("error: "):
                sys.exit(f"{name}: check's exit status {checked.returncode}, expected 1\n{checked.stderr}")
        print(f"{name}: {done.stderr.strip().replace(place + '/', '').replace(place, 'DIR')}")


def generate(place, *options):
    import generate as generator
    generator.main([*options, "-o", place])
