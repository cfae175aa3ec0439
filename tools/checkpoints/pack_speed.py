"""Measures packing against copying the same files, in turns, and prints the ratio of their speeds.

Both end when everything is on the disk; before each, the system's cache of the checkpoint is given back, or filled (--warm).
Other work on the machine disturbs the times, less so the seconds of CPU, which are printed beside them.
"""
import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time


def files_of(folder):
    return [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]


def give_back_cache(folder):
    for path in files_of(folder):
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def fill_cache(folder):
    for path in files_of(folder):
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(command):
    """Seconds, and those of CPU."""
    begin, cpu = time.monotonic(), cpu_seconds()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return time.monotonic() - begin, cpu_seconds() - cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="directory with its config.json; a few GB")
    parser.add_argument("--bin", default="build/release/bin", metavar="DIR", help="where grokc and grokrun are")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--dtype", default="bf16", help="int8 for ckpt-0, so that as much is written as read")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--warm", action="store_true", help="with the checkpoint in the system's cache")
    parser.add_argument("--work", default="pack-speed", metavar="DIR", help="scratch, on the disk to measure; removed")
    options = parser.parse_args()
    empty, packed, copy = (os.path.join(options.work, name) for name in ("empty.grok", "packed.grok", "copy"))
    os.makedirs(options.work)
    try:
        subprocess.run([f"{options.bin}/grokc", "compile", "--config", options.checkpoint, "--weights", "none", "--target",
                        options.target, "--dtype", options.dtype, "-o", empty], check=True, stderr=subprocess.DEVNULL)
        total, times = sum(map(os.path.getsize, files_of(options.checkpoint))), {"copy": [], "pack": []}
        commands = {
            "copy": ["sh", "-c", 'cp -r "$1" "$2" && sync $(find "$2" -type f)', "copy", options.checkpoint, copy],
            "pack": [f"{options.bin}/grokrun", "pack", packed, "--weights", options.checkpoint],
        }
        for number in range(options.rounds):
            for what in ("copy", "pack") if number % 2 == 0 else ("pack", "copy"):
                for old in (copy, packed):
                    shutil.rmtree(old, ignore_errors=True)
                shutil.copytree(empty, packed)
                os.sync()
                (fill_cache if options.warm else give_back_cache)(options.checkpoint)
                seconds, cpu = timed(commands[what])
                times[what].append(seconds)
                print(f"{what}: {seconds:.2f} s, {total / seconds / 1e6:.0f} MB/s, {cpu:.2f} s of CPU", flush=True)
        for what, seconds in times.items():
            print(f"{what}: median {statistics.median(seconds):.2f} s of {min(seconds):.2f} to {max(seconds):.2f} s")
        ratio = statistics.median(times["copy"]) / statistics.median(times["pack"])
        print(f"packing at {ratio:.2f} of the speed of copying (medians of {options.rounds})")
    finally:
        shutil.rmtree(options.work, ignore_errors=True)


if __name__ == "__main__":
    main()
