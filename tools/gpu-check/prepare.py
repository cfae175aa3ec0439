"""`prepare`: compiles every bundle without weights into a folder that can travel."""
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tarfile

import cases

SIZE_LIMIT = 60 << 20  # bytes of the folder and the models together


def tree_bytes(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(path) for f in files)


def prepare(out, bin_dir, models, root, selected, jobs):
    grokc, grokrun = (os.path.join(bin_dir, tool) for tool in ("grokc", "grokrun"))
    for tool in (grokc, grokrun):
        if not os.access(tool, os.X_OK):
            sys.exit(f"error: {tool}: found no program; build the project, or name its bin folder with --bin")
    staged = out.rstrip("/") + ".tmp"
    shutil.rmtree(staged, ignore_errors=True)
    for folder in ("bundles", "compiled"):
        os.makedirs(os.path.join(staged, folder))
    shutil.copy2(grokrun, os.path.join(staged, "grokrun"))
    with open(os.path.join(root, "targets", "h200.json")) as file:
        h200 = json.load(file)
    for path in cases.PATHS:
        with open(os.path.join(staged, f"{path}.json"), "w") as file:
            json.dump(cases.target_json(path, h200), file, indent=2)

    def compile_case(case):
        bundle = os.path.join(staged, "compiled", f"{case.name}.grok")
        command = [grokc, "compile", "--config", case.config(models),
                   "--target", os.path.join(staged, f"{case.path}.json"), *case.compile_flags(), "-o", bundle]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            with tarfile.open(os.path.join(staged, case.archive), "w:gz") as archive:
                archive.add(bundle, os.path.basename(bundle))
        return case, command, done

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for case, command, done in pool.map(compile_case, selected):
            if done.returncode != 0:
                sys.exit(f"error: {case.name}: {done.stderr.strip()}\n  {' '.join(command)}")
    shutil.rmtree(os.path.join(staged, "compiled"))
    total = tree_bytes(staged) + tree_bytes(models)
    if total > SIZE_LIMIT:
        sys.exit(f"error: folder and models have {total} bytes, expected at most {SIZE_LIMIT}")
    shutil.rmtree(out, ignore_errors=True)
    os.rename(staged, out)
    print(f"{out}: {len(selected)} bundles, {total >> 20} MiB with the models")
