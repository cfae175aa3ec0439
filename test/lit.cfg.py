# Configuration of the test suite. Substitutions and features are listed in docs/testing.md.
import ctypes
import os
import shutil
import subprocess
import sys

import lit.formats
import lit.util

sanitized = config.grok_sanitize or config.grok_sanitize_threads
config.name = ("grok-threads" if config.grok_sanitize_threads else "grok-fuzz" if config.grok_fuzz
               else "grok-sanitized" if config.grok_sanitize else "grok")
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "models", "seeds", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = config.grok_test_dir

# LLVM's tools of the version that the project is built with come first: FileCheck, not, split-file.
path = [config.llvm_tools_dir, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["LC_ALL"] = "C.UTF-8"
# The user's own settings must not change what the tests see.
for name in ("GROK_KV_CACHE_BUFFER_MB", "GROK_MAX_SEQ_LEN", "GROK_NVML"):
    config.environment.pop(name, None)


def cuda_device():
    """True if the CUDA driver is there and sees a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def can_mount():
    """True if a process may mount a file system for itself."""
    command = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


ptxas = shutil.which("ptxas", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))
# PTX does not depend on how the compiler was built, so it is assembled in one of the suites only.
if ptxas and not sanitized:
    config.available_features.add("ptxas")
if cuda_device():
    config.available_features.add("cuda")
# Any of the names under which a browser that draws without a screen is installed.
chromium = next(filter(None, map(shutil.which, ["chromium-headless-shell", "chromium", "google-chrome"])), None)
if chromium:
    config.available_features.add("chromium")
if config.grok_fuzz:
    config.available_features.add("fuzz")
if can_mount():
    config.available_features.add("mounts")
if os.path.exists(config.grok_sentencepiece_plugin):
    config.available_features.add("sentencepiece")
# A sanitised build is an order of magnitude slower: tests that only add size say UNSUPPORTED: sanitizer.
if sanitized:
    config.available_features.add("sanitizer")
else:
    config.available_features.add("release")
if config.grok_sanitize:
    # Debian's LLVM is not instrumented: what it allocates is freed by code that the sanitizer cannot see, and its own
    # poisoning of arenas is seen in our half of its headers only.
    config.environment["ASAN_OPTIONS"] = "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0"
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"

config.substitutions += [
    ("%grok-opt", os.path.join(config.grok_compiler_dir, "grok-opt")),
    ("%grokrun", os.path.join(config.grok_tools_dir, "grokrun")),
    ("%grokc", os.path.join(config.grok_compiler_dir, "grokc")),
    ("%generate", os.path.join(config.test_source_root, "../tools/checkpoints/generate.py")),
    ("%models", os.path.join(config.test_source_root, "models")),
    ("%unit", config.grok_unit_dir),
    ("%faults", os.path.join(config.grok_build_dir, "lib/libgrok-faults.so")),
    ("%source", config.grok_source_dir),
    ("%build", config.grok_build_dir),
    ("%ptxas", ptxas or "ptxas"),
    ("%chromium", chromium or "chromium"),
    (r"(?<![\w./%-])python(?![\w./-])", sys.executable),
]

# Seconds a test may take; lit needs psutil to end a test with all its children.
if lit.util.killProcessAndChildrenIsSupported()[0]:
    lit_config.maxIndividualTestTime = 600 if sanitized else 300
