"""Ways to damage a bundle. Each takes the folder of a copy, a random number generator, the folder that was copied and those
of all originals; it changes something and says what."""
import collections
import copy
import hashlib
import json
import os
import random
import shutil

JSON_FILES = ("manifest.json", "model.json")

Made = collections.namedtuple("Made", "kind what original")


def read(place):
    with open(place, "rb") as file:
        return bytearray(file.read())


def write(place, data):
    with open(place, "wb") as file:
        file.write(data)


def pick(folder, rng):
    """A file; as often a small one as the blob."""
    return rng.choice(sorted(os.listdir(folder)))


def flip_bits(folder, rng, *_):
    name = pick(folder, rng)
    data = read(f"{folder}/{name}")
    bits = [rng.randrange(8 * len(data)) for _ in range(rng.choice((1, 1, 1, 2, 8)))]
    for bit in bits:
        data[bit // 8] ^= 1 << bit % 8
    write(f"{folder}/{name}", data)
    return f"bits {bits} of {name}"


def overwrite(folder, rng, *_):
    name = pick(folder, rng)
    data = read(f"{folder}/{name}")
    begin = rng.randrange(len(data))
    end = min(len(data), begin + rng.choice((1, 4, 8, 64, 512, 4096)))
    fill = rng.choice((b"\0", b"\xff", b" ", None))
    data[begin:end] = (fill * (end - begin)) if fill else rng.randbytes(end - begin)
    write(f"{folder}/{name}", data)
    return f"bytes {begin} to {end} of {name} with {fill}"


def truncate(folder, rng, *_):
    name = pick(folder, rng)
    size = os.path.getsize(f"{folder}/{name}")
    left = rng.choice((0, 1, size // 2, size - 1, rng.randrange(size)))
    os.truncate(f"{folder}/{name}", left)
    return f"{name} to {left} of {size} bytes"


def extend(folder, rng, *_):
    name = pick(folder, rng)
    more = rng.choice((b"\n", b" ", b"\0" * 512, rng.randbytes(16)))
    write(f"{folder}/{name}", read(f"{folder}/{name}") + more)
    return f"{name} by {len(more)} bytes"


def swap_files(folder, rng, *_):
    first, second = rng.sample(sorted(os.listdir(folder)), 2)
    os.rename(f"{folder}/{first}", f"{folder}/swap")
    os.rename(f"{folder}/{second}", f"{folder}/{first}")
    os.rename(f"{folder}/swap", f"{folder}/{second}")
    return f"{first} with {second}"


def take_from_other(folder, rng, _, others):
    other = rng.choice(others)
    names = sorted(os.listdir(other))
    taken = rng.sample(names, rng.randrange(1, len(names)))
    for name in taken:
        shutil.copyfile(f"{other}/{name}", f"{folder}/{name}")
    return f"{taken} of {os.path.basename(other)}"


def remove_file(folder, rng, *_):
    name = pick(folder, rng)
    os.unlink(f"{folder}/{name}")
    return name


def add_file(folder, rng, *_):
    name = rng.choice(("decode.ptx", "prefill.ptx", "trace.ptx", "weights.blob", "tokenizer.model", "tokenizer.tok.json",
                       "packing", ".hidden", "a file", "manifest.json~", "x" * 200))
    data = rng.choice((b"", b"{}", rng.randbytes(64)))
    write(f"{folder}/{name}", data)
    return f"{name} of {len(data)} bytes"


def replace_kind(folder, rng, original, _):
    """A link, a folder or a pipe in a file's place."""
    name, kind = pick(folder, rng), rng.choice(("link", "loop", "folder", "pipe"))
    place = f"{folder}/{name}"
    os.unlink(place)
    if kind == "link":
        os.symlink(f"{original}/{name}", place)
    elif kind == "loop":
        os.symlink(name, place)
    elif kind == "folder":
        os.mkdir(place)
    else:
        os.mkfifo(place)
    return f"a {kind} for {name}"


def places(value, path=()):
    """Paths to all values below."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield path + (key,)
        yield from places(inner, path + (key,))


def other_value(value, rng):
    if isinstance(value, bool):
        return rng.choice((not value, None, int(value)))
    if isinstance(value, (int, float)):
        return rng.choice((value + 1, value - 1, -value, 0, value * 2, value / 2, 2**32, 2**64, 1e308, str(value), None,
                           value + 1e-9))
    if isinstance(value, str):
        cut = rng.randrange(len(value) + 1)
        return rng.choice((value[:cut], value + "x", value.upper(), value[::-1], "", "../" + value, 7, value[:cut] + "\u00e9"))
    return rng.choice((None, [], {}, [value], {"a": value}, 0))


def edit_json(folder, rng, *_):
    name = rng.choice([n for n in sorted(os.listdir(folder)) if n.endswith(".json")])
    root = json.loads(read(f"{folder}/{name}"))
    what = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(sorted(places(root), key=str))
        parent = root
        for key in path[:-1]:
            parent = parent[key]
        key = path[-1]
        how = rng.choice(("change", "change", "change", "remove", "add", "copy"))
        if how == "change":
            parent[key] = other_value(parent[key], rng)
        elif how == "remove":
            del parent[key]
        elif how == "add" and isinstance(parent, dict):
            parent[f"{key}_2"] = copy.deepcopy(parent[key])
        elif how == "copy":
            parent[key] = copy.deepcopy(rng.choice((root, parent)))
        what.append((how, path))
    text = json.dumps(root, indent=rng.choice((2, 2, None)), sort_keys=True) + "\n"
    write(f"{folder}/{name}", text.encode())
    return f"{name}: {what}"


def edit_text(folder, rng, *_):
    """As a person does with an editor: a digit, a line more or less, blanks."""
    name = rng.choice(JSON_FILES)
    lines = read(f"{folder}/{name}").decode().splitlines(keepends=True)
    i = rng.randrange(len(lines))
    how = rng.choice(("digit", "remove", "double", "blank", "comment"))
    if how == "digit":
        digits = [(j, k) for j, line in enumerate(lines) for k, c in enumerate(line) if c.isdigit()]
        i, k = rng.choice(digits)
        lines[i] = lines[i][:k] + rng.choice("0123456789") + lines[i][k + 1:]
    elif how == "remove":
        del lines[i]
    elif how == "double":
        lines.insert(i, lines[i])
    elif how == "blank":
        lines[i] = " " + lines[i]
    else:
        lines[i] = "// a note\n" + lines[i]
    write(f"{folder}/{name}", "".join(lines).encode())
    return f"{name}: {how} in line {i + 1}"


def edit_record(folder, rng, *_):
    """A file and what the manifest says of it go together, but for the hash."""
    manifest = json.loads(read(f"{folder}/manifest.json"))
    name = rng.choice(sorted(manifest["files"]))
    how = rng.choice(("drop", "size", "rename"))
    if how == "drop":
        os.unlink(f"{folder}/{name}")
        del manifest["files"][name]
    elif how == "size":
        data = read(f"{folder}/{name}") + rng.randbytes(rng.randrange(1, 600))
        write(f"{folder}/{name}", data)
        manifest["files"][name]["bytes"] = len(data)
    else:
        os.rename(f"{folder}/{name}", f"{folder}/x-{name}")
        manifest["files"][f"x-{name}"] = manifest["files"].pop(name)
    write(f"{folder}/manifest.json", (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode())
    return f"{how} {name}"


KINDS = (flip_bits, overwrite, truncate, extend, swap_files, take_from_other, remove_file, add_file, replace_kind, edit_json,
         edit_text, edit_record)
# Those that leave files whose hashes can be made to fit.
SEALABLE = (flip_bits, overwrite, truncate, extend, take_from_other, edit_json, edit_text)


def seal(folder):
    """Makes the manifest fit the files."""
    try:
        manifest = json.loads(read(f"{folder}/manifest.json"))
        records = manifest["files"]
        for name in records:
            data = read(f"{folder}/{name}")
            records[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    except (ValueError, KeyError, TypeError, OSError):
        return  # it is no manifest any more, or a file of it is missing
    manifest["seal"] = "0" * 64
    text = (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode()
    write(f"{folder}/manifest.json", text.replace(b"0" * 64, hashlib.sha256(text).hexdigest().encode()))


def make(seed, originals, place, resealed):
    """Copies an original bundle to `place` and damages the copy."""
    rng = random.Random(seed)
    original = rng.choice(originals)
    shutil.copytree(original.path, place)
    change = rng.choice(SEALABLE if resealed else KINDS)
    what = change(place, rng, original.path, [o.path for o in originals])
    if resealed:
        seal(place)
    return Made(change.__name__, what, original)
