"""text.py GROKRUN BUNDLE PROMPT...: an answer's text is what `grokrun generate` shows behind the prompt, and the texts of
streamed ids are its parts."""
import json
import subprocess
import sys

from serving import Client, Server

grokrun, bundle, *prompts = sys.argv[1:]
agree = 0
with Server(grokrun, bundle) as server:
    client = Client(server)
    for seed, prompt in enumerate(prompts):
        command = [grokrun, "generate", bundle, "--device", "cpu", "--prompt", prompt, "-n", "200", "--json",
                   "--temperature", "5", "--seed", str(seed)]
        whole = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        request = {"prompt": prompt, "max_new_tokens": 200, "temperature": 5, "seed": seed}
        answer = client.ask(**request)
        assert answer["ids"] == whole["ids"], (answer, whole)
        assert prompt + answer["text"] == whole["text"], (answer, whole)
        assert answer["finish"] == ("length" if len(answer["ids"]) == 200 else "stop")
        client.send(**request, stream=True)
        parts, ids = "", []
        while (line := client.receive())["event"] == "tokens":
            parts += line["text"]
            ids += line["ids"]
        assert ids == line["ids"] == whole["ids"]
        assert line["text"] == answer["text"] and answer["text"].startswith(parts), (parts, line)
        # What `grokrun request` prints, as a whole and as it comes.
        for flags in ([], ["--stream"]):
            command = [grokrun, "request", "--socket", server.path, "--prompt", prompt, "-n", "200", "--temperature", "5",
                       "--seed", str(seed), *flags]
            shown = subprocess.run(command, check=True, capture_output=True).stdout.decode()
            assert shown == answer["text"] + "\n", (shown, answer)
        agree += 1
print(agree, "texts agree")
