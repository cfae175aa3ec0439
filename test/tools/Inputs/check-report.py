"""Checks a page of --report: check-report.py FILE [--plots N] [--words TEXT...].

It must be whole (every element closed), need nothing but itself (no script, no address), and its plots must draw within
their frames, with axes that have numbers and words.
"""
import argparse
import html.parser
import re


parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("--plots", type=int, required=True)
parser.add_argument("--words", nargs="*", default=[])
args = parser.parse_args()

VOID = {"meta", "br", "hr", "img", "input", "link"}
NUMBERS = ("x", "y", "x1", "x2", "y1", "y2", "width", "height")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.plots, self.words = [], [], []

    def handle_starttag(self, tag, attributes):
        self.start(tag, dict(attributes))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.start(tag, dict(attributes))

    def start(self, tag, attributes):
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "foreignobject"), tag
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("href", "src", "xlink:href", "style"), (tag, name)
            assert "//" not in (value or ""), (tag, name, value)
        if tag == "svg":
            width, height = map(float, attributes["viewbox"].split()[2:])
            assert attributes["role"] == "img" and attributes["aria-label"]
            self.plots.append({"size": (width, height), "label": attributes["aria-label"], "shapes": 0, "texts": []})
        elif "svg" in self.open and tag in ("rect", "line", "polyline", "text"):
            self.shape(tag, attributes)

    def shape(self, tag, attributes):
        plot = self.plots[-1]
        width, height = plot["size"]
        points = [tuple(map(float, p.split(","))) for p in attributes.get("points", "").split()]
        assert tag != "polyline" or points, plot["label"]
        number = {name: float(attributes[name]) for name in NUMBERS if name in attributes}
        if tag == "line":
            points += [(number["x1"], number["y1"]), (number["x2"], number["y2"])]
        if tag == "rect":
            assert number["width"] >= 0 and number["height"] >= 0, (plot["label"], attributes)
            points += [(number["x"], number["y"]), (number["x"] + number["width"], number["y"] + number["height"])]
        if tag == "text":
            points += [(number["x"], number["y"])]
        for x, y in points:
            assert -1 <= x <= width + 1 and -1 <= y <= height + 1, (plot["label"], tag, attributes)
        plot["shapes"] += tag != "text"
        self.text = plot["texts"] if tag == "text" else None

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()
        self.text = None

    def handle_data(self, data):
        if getattr(self, "text", None) is not None:
            self.text.append(data)
        if self.open and self.open[-1] != "style":
            self.words.append(data)


text = open(args.file, encoding="utf-8").read()
assert text.startswith("<!DOCTYPE html>\n")
assert not re.search(r"url\(|@import|https?:", text)
assert not re.search(r"\b(nan|inf)\b", text)
page = Page()
page.feed(text)
page.close()
assert not page.open, page.open
assert len(page.plots) == args.plots, [p["label"] for p in page.plots]
for plot in page.plots:
    numbers = [t for t in plot["texts"] if re.fullmatch(r"-?[0-9.]+(e[+-][0-9]+)?", t)]
    words = [t for t in plot["texts"] if re.search("[A-Za-z]", t) and t not in numbers]
    assert plot["shapes"] > 3 and len(numbers) > 1 and words, plot
    print(f"{plot['label']}: {', '.join(words)}")
everything = " ".join(page.words)
for words in args.words:
    assert words in everything, words
