"""request_shape.py GROKC CONFIG: predictions of longer and longer requests."""
import json
import subprocess
import sys
import tempfile

grokc, config = sys.argv[1:]
times = []
with tempfile.TemporaryDirectory() as folder:
    for prompt, new in ((1, 1), (1, 1023), (512, 64), (512, 512), (960, 64)):
        bundle = f"{folder}/{prompt}-{new}.grok"
        subprocess.run([grokc, "compile", "--config", config, "--weights", "none", "--target", "cpu", "--request", f"{prompt}+{new}",
                        "-o", bundle], check=True, stderr=subprocess.DEVNULL)
        report = json.loads(subprocess.run([grokc, "inspect", bundle, "--json"], capture_output=True, text=True, check=True).stdout)
        request, = (p for p in report["prediction"]["predictions"] if p["scope"] == "request" and p["batch"] == 1)
        assert (request["context"], request["generated"]) == (prompt, new), request
        times.append(request["worst"]["us"])
one, whole_row, reference, more, longer = times
assert one < reference < more < whole_row and reference < longer, times
