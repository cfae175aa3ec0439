"""cut-short.py GROKRUN BUNDLE: the weights are cut off beneath a server that runs."""
import os
import sys

from serving import Client, Server

grokrun, bundle = sys.argv[1:]
with Server(grokrun, bundle) as server:
    client = Client(server)
    assert client.ask(ids=[1], max_new_tokens=1)["event"] == "done"
    os.truncate(os.path.join(bundle, "weights.blob"), 0)
    client.send(ids=[1, 2, 3], max_new_tokens=8)
    status, said = server.wait()
    print("status", status, "socket", os.path.exists(server.path), said)
