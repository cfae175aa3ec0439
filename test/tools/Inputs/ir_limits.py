"""ir_limits.py GROK-OPT FILE: what MLIR takes without a bound, through FILE."""
import subprocess
import sys

grok_opt, file = sys.argv[1:]


def run(text, *flags):
    with open(file, "wb") as f:
        f.write(text.encode("latin-1"))
    return subprocess.run([grok_opt, file, *flags], capture_output=True, text=True)


def accept(what, text, *flags):
    done = run(text, *flags)
    print(f"{what}: accepted" if done.returncode == 0 else done)


def refuse(text, *flags):
    done = run(text, *flags)
    assert done.returncode == 1 and not done.stdout, (done.returncode, done.stdout[:100])
    print(done.stderr.replace(file, "FILE"), end="")


def attribute(text):
    return "module attributes {x.a = " + text + "} {}"


def aliases(count, text, first="1 : i32", sigil="#"):
    """Each is `text` with the one before in place of @."""
    lines = [f"{sigil}a0 = {first}"]
    lines += [f"{sigil}a{i} = " + text.replace("@", f"{sigil}a{i - 1}") for i in range(1, count)]
    return "\n".join([*lines, attribute(f"{sigil}a{count - 1}")])


def section(name):
    print(f"{name}:")


section("nesting")
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
refuse(attribute("affine_map<(d0) -> (" + "- // \n" * 1000 + "d0)>"))
refuse(attribute("affine_map<(d0) -> (" + "-\0" * 1000 + "d0)>"))  # a NUL is a blank
refuse("// x\r" + attribute("[" * 10000 + "]" * 10000))  # ends a comment
# None of these is a level.
brackets = "([{<" * 1000
arrows = ", ".join(["affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>", "(i1) -> i1"] * 200)
accept("strings, comments and arrows", f"// {brackets}\n" + attribute(f'["\\"{brackets}", {arrows}]'))
# Parts are parsed alone, and the marker between them is one in a string too.
hidden = attribute('"// -----' + attribute("[" * 1000 + "]" * 1000) + '"')
accept("a marker in a string", hidden)
refuse(hidden, "--split-input-file")

section("levels of aliases")
accept("aliases of 125 levels", aliases(126, "[@]"))
refuse(aliases(20000, "[@]"))
refuse(aliases(20000, "tuple<@>", "i32", "!"))
refuse(aliases(20000, "\n[ // [\n@\n]"))
refuse(aliases(20000, "dense<1>\n : tensor\n<1xi32,\n@>"))
refuse(aliases(20000, "[@]").replace(" =", "\0="))
refuse(aliases(20000, "[@]").replace("\n", " "))  # all on one line
# An operation behind an alias is no part of it.
accept("an alias before a module", "#a = 1 : i32\n" + "module {" * 100 + "}" * 100 + "\n" + attribute("[" * 50 + "#a" + "]" * 50))

section("bytes of aliases")
accept("130 thousand lists", aliases(18, "[@, @]"))
refuse(aliases(26, "[@, @]"))
refuse(aliases(40, "[@, @]"))
refuse(aliases(40, "tuple<@, @>", "i32", "!"))
refuse("\n// -----\n".join([aliases(20, "[@, @]")] * 9), "--split-input-file")

section("affine maps, numbers and words")
for term in [" * s0", " + d0 mod s0", " floordiv 2", " ceildiv 2", " - d0"]:
    accept(f"a map with {term}", attribute("affine_map<(d0)[s0] -> (d0" + term * (4050 // len(term)) + ")>"))
    refuse(attribute("affine_map<(d0)[s0] -> (d0" + term * 30000 + ")>"))
refuse(attribute("affine_set // \n <(d0)[s0] : (d0" + " mod s0" * 30000 + " >= 0)>"))
refuse(attribute("affine_map\0<(d0)[s0] -> (d0" + " mod s0" * 30000 + ")>"))
accept("numbers of 4096 digits", attribute("[" + "9" * 4096 + " : i20000, 0x" + "1" * 4000 + " : i20000]"))
refuse(attribute("9" * 200000 + " : i3000000"))
refuse(attribute("0x" + "9" * 200000 + " : i3000000"))
refuse(attribute("tensor<" + "2x" * 100000 + "i32>"))

section("results")
CAST = '"builtin.unrealized_conversion_cast"'
accept("result 255", f"module {{ %0:256 = {CAST}() : () -> ({', '.join(['i1'] * 256)}) %1 = {CAST}(%0#255) : (i1) -> i2 }}")
refuse(f"module {{ {CAST}(%0#256) : (i1) -> () }}")
refuse(f"module {{ {CAST}(%0 #4294967295) : (i1) -> () }}")
refuse(f"module {{ {CAST}(%0#99999999999999999999) : (i1) -> () }}")
refuse('module { "builtin.module"() ({^bb0(%a#4294967295: i1): }) : () -> () }')

section("bytecode")
bytecode = "ML\xefR" + "\1" * 100
refuse(bytecode)
refuse("module {}\n// -----" + bytecode, "--split-input-file")
