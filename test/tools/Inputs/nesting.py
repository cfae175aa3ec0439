"""nesting.py GROK-OPT FILE: what nests deep, through FILE."""
import subprocess
import sys

grok_opt, file = sys.argv[1:]


def run(text):
    with open(file, "w") as f:
        f.write(text)
    return subprocess.run([grok_opt, file], capture_output=True, text=True)


def accept(what, text):
    done = run(text)
    print(f"{what}: accepted" if done.returncode == 0 else done)


def refuse(text):
    done = run(text)
    assert done.returncode == 1, done.returncode
    print(done.stderr.replace(file, "FILE"), end="")


def attribute(text):
    return "module attributes {x.a = " + text + "} {}"


accept("regions of 127 levels", "module {" * 127 + "}" * 127)
refuse("module {" * 5000 + "}" * 5000)
refuse(attribute("[" * 10000 + "]" * 10000))
refuse(attribute("{b = " * 10000 + "}" * 10000))
refuse(attribute("tuple<" * 10000 + ">" * 10000))
refuse(attribute("vector<" * 10000))
refuse(attribute("(" * 10000))
refuse(attribute("affine_map<(d0) -> (" + "(" * 10000 + "d0" + ")" * 10000 + ")>"))
refuse(attribute("affine_map<(d0) -> (" + "- " * 10000 + "d0)>"))
refuse(attribute("[>" * 10000))  # a bracket of another kind ends no level
refuse(attribute("affine_map<(d0) -> (" + "- // \n" * 10000 + "d0)>"))
# None of these is a level.
brackets = "([{<" * 1000
arrows = ", ".join(["affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>", "(i1) -> i1"] * 200)
accept("strings, comments and arrows", f"// {brackets}\n" + attribute(f'["\\"{brackets}", {arrows}]'))
