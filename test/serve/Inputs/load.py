"""load.py [--seed N] GROKRUN BUNDLE REQUESTS [DEVICE [FLAG...]]: four clients share the requests, one of them is killed on the way.
Every other answer must be that of `grokrun generate`, or a part of it at the request's deadline; none later than its deadline by
more than one request takes. Requests, victim and the moment of its end follow from the seed, which is another one in every run
that names none, and printed."""
import argparse
import json
import multiprocessing
import os
import random
import signal
import time

from serving import Client, Server, generate

CLIENTS, PROMPTS, MOST_IDS, AT_ONCE = 4, 12, 24, 12


def client(server, draw, requests, wanted, pipe):
    """Keeps some requests in flight; reports times in ms: how long each took beside its wait, how late it was."""
    connection = Client(server)
    waiting, longest, latest, counts = {}, 0, -1e9, {"done": 0, "deadline_exceeded": 0, "streamed": 0}
    sent = 0
    while sent < requests or waiting:
        while sent < requests and len(waiting) < AT_ONCE:
            prompt = draw.randrange(PROMPTS)
            request = {"id": sent, "ids": wanted[prompt][0], "max_new_tokens": draw.randint(1, MOST_IDS),
                       "stream": draw.random() < 0.1, "deadline_ms": draw.choice([1e6, 1e6, 1e6, draw.uniform(0.1, 60)])}
            waiting[sent] = (request, wanted[prompt][1][:request["max_new_tokens"]], time.monotonic(), [])
            connection.send(**request)
            sent += 1
        answer = connection.receive()
        request, ids, begin, streamed = waiting[answer["id"]]
        if answer["event"] == "tokens":
            streamed += answer["ids"]
            continue
        del waiting[answer["id"]]
        took = (time.monotonic() - begin) * 1e3
        if answer["event"] == "done":
            assert answer["ids"] == ids, (request, answer, ids)
            longest = max(longest, took - answer["timings"]["queue_ms"])
            counts["done"] += 1
        else:
            assert answer["code"] == "deadline_exceeded" and request["deadline_ms"] < 1e6, (request, answer)
            assert answer["ids"] == ids[:len(answer["ids"])], (request, answer, ids)
            counts["deadline_exceeded"] += 1
        if request["stream"]:
            assert streamed == answer["ids"], (request, answer, streamed)
            counts["streamed"] += 1
        latest = max(latest, took - request["deadline_ms"])
        if sum(counts.values()) % 10 == 0:
            pipe.send(("progress", None))
    connection.close()
    pipe.send(("end", (longest, latest, counts)))


def main(seed, grokrun, bundle, requests, device, flags):
    print("seed", seed, flush=True)
    draw = random.Random(seed)
    prompts = [[draw.randrange(2048) for _ in range(1 + 3 * i)] for i in range(PROMPTS)]
    wanted = [(ids, generate(grokrun, bundle, ids, MOST_IDS, device)) for ids in prompts]
    with Server(grokrun, bundle, *flags, device=device) as server:
        begin = time.monotonic()
        pipes, processes = [], []
        for _ in range(CLIENTS):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=client, args=(server, random.Random(draw.getrandbits(64)),
                                                                   requests // CLIENTS, wanted, theirs))
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        victim = draw.randrange(CLIENTS)
        for _ in range(draw.randint(1, requests // CLIENTS // 20)):
            assert pipes[victim].recv()[0] == "progress"
        os.kill(processes[victim].pid, signal.SIGKILL)
        results = []
        for number in set(range(CLIENTS)) - {victim}:
            kind = "progress"
            while kind == "progress":
                kind, result = pipes[number].recv()
            results.append(result)
        for process in processes:
            process.join()
        seconds = time.monotonic() - begin
        assert server.process.poll() is None
    longest = max(r[0] for r in results)
    latest = max(r[1] for r in results)
    counts = {key: sum(r[2][key] for r in results) for key in results[0][2]}
    print(f"{requests} requests of {CLIENTS} clients in {seconds:.1f} s: {json.dumps(counts)}")
    print(f"longest of a request {longest:.1f} ms, most after its deadline {latest:.1f} ms")
    assert counts["done"] + counts["deadline_exceeded"] == requests // CLIENTS * (CLIENTS - 1)
    assert min(counts.values()) > 0
    assert latest <= longest
    print("all right")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("grokrun")
    parser.add_argument("bundle")
    parser.add_argument("requests", type=int)
    parser.add_argument("device", nargs="?", default="cpu")
    parser.add_argument("flags", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    main(args.seed, args.grokrun, args.bundle, args.requests, args.device, args.flags)
