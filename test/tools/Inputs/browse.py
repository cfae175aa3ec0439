"""Opens pages in headless Chromium: browse.py CHROMIUM PAGE... Each must be drawn as the page says, from itself alone.

The browser's element tree must hold what the file holds, its log no complaint, and the picture of the page colours of
the plots' palette in quantity: bars and lines were drawn, not only text.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib
from collections import Counter

WIDTH, HEIGHT, SCALE = 1000, 4000, 0.5  # a picture of half the size is read in a second
BLUE, ORANGE = (0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)


def chromium(program, *options):
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
                   f"--user-data-dir={profile}", f"--window-size={WIDTH},{HEIGHT}", "--hide-scrollbars",
                   "--enable-logging=stderr", "--force-color-profile=srgb",
                   f"--force-device-scale-factor={SCALE}", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)


def pixels(path):
    """Width, height and the RGB of every pixel of a PNG of 8 bits a channel without interlacing."""
    data = open(path, "rb").read()
    at, parts = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and colour in (2, 6), (depth, colour)
            size = 3 if colour == 2 else 4
        if kind == b"IDAT":
            parts += body
        at += 12 + length
    raw, stride, rows, above = zlib.decompress(parts), width * size, [], bytes(width * size)
    for y in range(height):
        filter_, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for x in range(stride if filter_ else 0):
            left = line[x - size] if x >= size else 0
            corner = above[x - size] if x >= size else 0
            p = left + above[x] - corner
            paeth = min((left, above[x], corner), key=lambda v: abs(p - v))
            line[x] = (line[x] + (0, left, above[x], (left + above[x]) // 2, paeth)[filter_]) & 255
        rows.append(line)
        above = line
    return width, height, [tuple(row[x : x + 3]) for row in rows for x in range(0, stride, size)]


program = sys.argv[1]
for page in sys.argv[2:]:
    source = open(page, encoding="utf-8").read()
    shown = chromium(program, "--dump-dom", f"file://{page}")
    assert shown.returncode == 0, shown.stderr
    assert "CONSOLE" not in shown.stderr, shown.stderr
    for tag in ("svg", "rect", "line", "polyline", "text", "figure", "tr"):
        count = [len(re.findall(f"<{tag}[ >]", text)) for text in (source, shown.stdout)]
        assert count[0] == count[1], (page, tag, count)
    with tempfile.TemporaryDirectory() as folder:
        picture = os.path.join(folder, "page.png")
        taken = chromium(program, f"--screenshot={picture}", f"file://{page}")
        assert taken.returncode == 0 and os.path.exists(picture), taken.stderr
        width, height, dots = pixels(picture)
    colours = Counter(dots)
    assert width == WIDTH * SCALE and height == HEIGHT * SCALE, (width, height)
    assert colours[BLUE] > 2000 and colours[ORANGE] > 200, (page, colours.most_common(12))
    print(f"{os.path.basename(page)}: {width} x {height} pixels, {len(colours)} colours")
