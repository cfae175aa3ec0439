"""full.py GROKRUN BUNDLE: a full queue refuses at once, and clients that go or don't read give their places back."""
import socket
import sys
import time

from serving import Client, Server

grokrun, bundle = sys.argv[1:]
LONG = {"ids": [1], "max_new_tokens": 1000, "ignore_eos": True}
ROWS, QUEUE = 8, 2
with Server(grokrun, bundle, "--queue", str(QUEUE)) as server:
    first = Client(server)
    for i in range(ROWS + QUEUE):
        first.send(id=i, **LONG)
    first.send(id="more", **LONG)
    refusal = first.receive()
    print(refusal["id"], refusal["code"], refusal["message"])
    other = Client(server)
    print("another:", other.ask(ids=[1])["code"])
    # The first one goes: all its requests end, and there is room again.
    first.close()
    answer = other.ask(ids=[1], max_new_tokens=3)
    while answer["event"] == "error":
        assert answer["code"] == "queue_full"
        time.sleep(0.01)
        answer = other.ask(ids=[1], max_new_tokens=3)
    print("afterwards:", len(answer["ids"]), "ids")

    # A client that asks and does not read is given up; the other one is served all the while.
    deaf = socket.socket(socket.AF_UNIX)
    deaf.connect(server.path)
    deaf.settimeout(30)
    lines = b"x\n" * 20000  # each answered by a line of some 150 bytes
    sent = 0
    try:
        while sent < 100 * len(lines):
            sent += deaf.send(lines)
            assert other.ask(ids=[1], max_new_tokens=1)["event"] == "done"
        print("never given up")
    except (BrokenPipeError, ConnectionResetError):
        print("given up")
    assert other.ask(ids=[1], max_new_tokens=1)["event"] == "done"

# A client gets no more than its share, and the others find room.
with Server(grokrun, bundle, "--queue", str(QUEUE), "--per-client", "3") as server:
    greedy, other = Client(server), Client(server)
    for i in range(5):
        greedy.send(id=i, **LONG)
    for refusal in (greedy.receive(), greedy.receive()):
        print(refusal["id"], refusal["code"], refusal["message"])
    print("another:", other.ask(ids=[1], max_new_tokens=3)["event"])
