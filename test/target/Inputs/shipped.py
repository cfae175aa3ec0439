"""Checks targets/: each file has the schema's fields, its own name, and is known to grokc by it."""
import json
import pathlib
import subprocess
import sys

targets, grokc, model = sys.argv[1:]
schema = json.loads((pathlib.Path(targets) / "schema.json").read_text())
assert sorted(schema["required"]) == sorted(schema["properties"])
names = []
for file in sorted(pathlib.Path(targets).glob("*.json")):
    if file.name == "schema.json":
        continue
    target = json.loads(file.read_text())
    names.append(file.stem)
    assert target["name"] == file.stem, file
    assert sorted(target) == sorted(schema["required"]), file
    for key, value in target.items():
        rule = schema["properties"][key]
        assert value in rule.get("enum", [value]), (file, key)
        assert value >= rule.get("minimum", value), (file, key)
        assert type(value) in (int, float, str, list) and (rule.get("type") != "integer" or type(value) is int), (file, key)
        if isinstance(value, (int, float)):
            assert value <= rule.get("maximum", value), (file, key)
    subprocess.run([grokc, "compile", "--config", model, "--emit=grok", "--target", file.stem], check=True,
                   capture_output=True)
    subprocess.run([grokc, "compile", "--config", model, "--emit=grok", "--target", str(file)], check=True,
                   capture_output=True)
listed = subprocess.run([grokc, "compile", "--config", model], capture_output=True, text=True)
bare = subprocess.run([grokc, "compile", "--config", model, "--emit=grok"], capture_output=True, text=True).stderr
assert "expected one of " + ", ".join(names) + ", or" in bare, bare
assert listed.returncode == 1
