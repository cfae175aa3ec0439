"""deadline.py GROKC CONFIG BUNDLE: a deadline just below the bundle's worst request is missed, one just above is kept."""
import json
import subprocess
import sys

grokc, config, bundle = sys.argv[1:]
report = json.loads(subprocess.run([grokc, "inspect", bundle, "--json"], capture_output=True, text=True, check=True).stdout)
worst = max(p["worst"]["us"] for p in report["prediction"]["predictions"] if p["scope"] == "request") / 1000
for factor, kept in ((0.999, False), (1.001, True)):
    command = [grokc, "compile", "--config", config, "--target", "h200", "--weights", "none", "--emit=plan"]
    code = subprocess.run([*command, "--deadline-ms", f"{worst * factor:.6f}"], capture_output=True).returncode
    assert (code == 0) == kept, (worst, factor, code)
