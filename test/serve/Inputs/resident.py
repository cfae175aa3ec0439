"""resident.py GROKRUN BUNDLE: a server whose kernel stays, with a pause, a request that is cancelled, and SIGTERM."""
import sys
import time

from serving import Client, Server

server = Server(*sys.argv[1:], "--resident", device="cuda:0")
server.start()
client = Client(server)
answer = client.ask(ids=[7, 8, 9], max_new_tokens=3)
if answer["event"] == "error":
    print(answer["code"], answer["message"])
    status, said = server.wait()
    sys.exit(print("status", status))
print(answer["ids"])
time.sleep(0.2)
print(client.ask(ids=[7, 8, 9], max_new_tokens=3)["ids"])
other = Client(server)
other.send(ids=[1], max_new_tokens=120, stream=True)
assert other.receive()["event"] == "tokens"
other.close()
print("cancelled")
print(client.ask(ids=[1], max_new_tokens=2)["ids"])
client.close()
status, said = server.stop()
print("status", status, "said", repr(said))
