"""Every input once with 0 bytes and once with 5 GB of holes: SOURCE GROKC GROKRUN FOLDER."""
import os
import shutil
import sys

import tools

source, grokc, grokrun, folder = sys.argv[1:]
LARGE = 5 * 10**9
MOST_MEMORY = 1 << 30


def resize(path, size):
    with open(path, "wb") as file:
        file.truncate(size)


def compiled(folder, out, *options):
    return [grokc, "compile", "--config", folder, "--target", "cpu", *options, "-o", out]


plain = tools.checkpoint(source, f"{folder}/safetensors", "--layout", "safetensors", "--vocabulary", "300", "--tokenizer")
layouts = {"safetensors": plain}
for layout, more in (("safetensors-sharded", ()), ("safetensors-tp", ()), ("torch", ()), ("gguf", ()),
                     ("ckpt-0", ("--grid", "int8"))):
    layouts[layout] = tools.checkpoint(source, f"{folder}/{layout}", "--layout", layout, *more)
tools.ok(*compiled(plain, f"{folder}/m.grok"))

# What is damaged, and the commands that read it: (file, commands).
cases = []
for layout, place in layouts.items():
    files = [os.path.join(d, f) for d, _, names in os.walk(place) for f in names]
    for file in dict.fromkeys(sorted(files)[:4] + sorted(files)[-2:]):
        checked = [] if file.endswith(("config.json", "tokenizer.tok.json")) else [[grokrun, "check", place]]
        cases.append((file, [compiled(place, f"{folder}/out.grok"), *checked]))
bundle = f"{folder}/m.grok"
for name in tools.entries(bundle):
    cases.append((f"{bundle}/{name}", [[grokrun, "verify", bundle], [grokrun, "generate", bundle, "--ids", "1", "--device", "cpu"],
                                       [grokc, "inspect", bundle], [grokc, "retarget", bundle, "--target", "cpu", "-o",
                                                                    f"{folder}/out.grok"]]))
sentencepiece = tools.checkpoint(source, f"{folder}/sentencepiece", "--layout", "safetensors")
shutil.copyfile(f"{source}/test/models/tiny-top2/tokenizer.model", f"{sentencepiece}/tokenizer.model")
cases.append((f"{sentencepiece}/tokenizer.model", [compiled(sentencepiece, f"{folder}/out.grok")]))
for name in ("target.json", "ids", "requests", "histogram"):
    shutil.copyfile(f"{source}/targets/cpu.json", f"{folder}/{name}")
cases += [
    (f"{folder}/target.json", [[grokc, "compile", "--config", plain, "--target", f"{folder}/target.json", "-o", f"{folder}/out.grok"]]),
    (f"{folder}/ids", [[grokrun, "generate", bundle, "--ids", f"{folder}/ids", "--device", "cpu"],
                       [grokc, "routing", "--config", f"{source}/test/fuzz/models/hash.json", "--tokens", f"{folder}/ids"]]),
    (f"{folder}/requests", [[grokrun, "replay", bundle, "--requests", f"{folder}/requests", "--device", "cpu"]]),
    (f"{folder}/histogram", [compiled(plain, f"{folder}/out.grok", "--expert-pruning-ratio", "0.5", "--expert-histogram",
                                      f"{folder}/histogram")]),
]
commands = 0
for file, reads in cases:
    os.rename(file, f"{folder}/kept")
    for size in (0, LARGE):
        resize(file, size)
        for command in reads:
            tools.refused(*command)
            commands += 1
            if os.path.exists(f"{folder}/out.grok"):
                sys.exit(f"{command}: left a bundle")
    os.rename(f"{folder}/kept", file)
tools.ok(grokrun, "verify", bundle)  # the cases were put back
if tools.most_memory() > MOST_MEMORY:
    sys.exit(f"a command took {tools.most_memory()} bytes of memory")
print(f"{commands} commands on {len(cases)} files refused")
