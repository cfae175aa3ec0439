"""long-text.py GROKRUN BUNDLE: a client's texts that take long hold up neither another client's ids nor its deadlines, and its
texts for as long as one of them takes."""
import select
import sys
import time

from serving import Client, Server

LONG = "a" * 900_000  # of a line that may have 2^20 bytes


def unanswered(client):
    return not select.select([client.socket], [], [], 0)[0]


grokrun, bundle = sys.argv[1:]
with Server(grokrun, bundle, "--queue", "0") as server:
    hog, other = Client(server), Client(server)
    other.ask(prompt="warm", max_new_tokens=1)

    def flood(texts):
        for number in range(texts):
            hog.send(id=number, prompt=LONG)
        # The server has read them all once it has answered what came behind them.
        hog.send(id="behind", ids=[-1])
        while (answer := hog.receive())["id"] != "behind":
            assert answer["id"] == texts - 1, answer  # what the queue had no place for
            print(answer["code"], answer["message"])

    flood(3)
    answer = other.ask(ids=[1], max_new_tokens=1, deadline_ms=1e5)
    assert answer["event"] == "done" and unanswered(hog), answer
    print("ids: done")
    answer = other.ask(id="late", prompt="a", max_new_tokens=5, deadline_ms=50)
    assert unanswered(hog), answer
    assert 50 <= answer["timings"]["total_ms"] and answer["timings"]["queue_ms"] is None, answer
    print("text:", answer["code"], answer["message"], answer["ids"], repr(answer["text"]))
    begin = time.monotonic()
    answer = other.ask(prompt="a", max_new_tokens=1)
    waited = (time.monotonic() - begin) * 1e3
    assert answer["event"] == "done", answer
    # Its times count from when the line was read, and most of them is the wait for the other's text.
    assert waited / 2 < answer["timings"]["total_ms"] <= waited, (answer, waited)
    print("text:", answer["event"])
    answers = [hog.receive()]
    assert unanswered(hog)  # two more, of which one is being encoded
    answers += [hog.receive(), hog.receive()]
    assert [a["id"] for a in answers] == [0, 1, 2]
    print("long:", answers[0]["code"], answers[0]["message"])

    rows = 8
    flood(rows + 1)
    hog.close()  # what it waits for is forgotten, once the server has seen that
    while (answer := other.ask(prompt="a", max_new_tokens=1))["event"] == "error":
        assert answer["code"] == "queue_full", answer
        time.sleep(0.01)
    assert Client(server).ask(ids=[1], max_new_tokens=1)["event"] == "done"
print("ended")
