"""stop.py GROKRUN BUNDLE: SIGTERM and SIGINT while requests are in flight, or in a client that waits to be accepted,
lose none of them; a second signal ends at once."""
import os
import signal
import sys

from serving import Client, Server, generate, wait_until

grokrun, bundle = sys.argv[1:]
CLIENTS, EACH, COUNT = 3, 20, 60
wanted = [generate(grokrun, bundle, [i], COUNT) for i in range(EACH)]
for number in (signal.SIGTERM, signal.SIGINT):
    with Server(grokrun, bundle) as server:
        clients = [Client(server) for _ in range(CLIENTS)]
        for client in clients:
            for i in range(EACH):
                client.send(id=i, ids=[i], max_new_tokens=COUNT)
            client.send(bogus=1)  # the server has read all before when it answers this
        answers = [[] for _ in clients]
        for client, got in zip(clients, answers):
            got.append(client.receive())
            while got[-1].get("code") != "invalid_request":
                got.append(client.receive())
            got.pop()
        server.process.send_signal(number)
        wait_until(lambda: not os.path.exists(server.path), "end of the socket's file")
        clients[0].send(id="late", ids=[1])
        clients[1].socket.sendall(b'{"id":"half')
        refused = 0
        for client, got in zip(clients, answers):
            while (answer := client.receive()) is not None:
                if answer["id"] == "late":
                    print("late:", answer["code"], answer["message"])
                else:
                    got.append(answer)
            assert sorted(a["id"] for a in got) == list(range(EACH)), got
            assert all(a["ids"] == wanted[a["id"]] for a in got)
        status, said = server.wait()
        print(signal.Signals(number).name, "status", status, "said", repr(said))

# A client that has connected and sent a request, but was not accepted yet.
with Server(grokrun, bundle) as server:
    server.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
    client = Client(server)
    client.send(id="waiting", ids=[0], max_new_tokens=COUNT)
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGCONT)
    answer = client.receive()
    # It may be accepted just before the signal is seen.
    told = answer.get("code") == "shutting_down" or answer.get("ids") == wanted[0]
    status, said = server.wait()
    print(answer["id"], "told" if told else answer, "status", status, "said", repr(said))

server = Server(grokrun, bundle)
server.start()
client = Client(server)
for _ in range(50):
    client.send(ids=[1], max_new_tokens=1000, ignore_eos=True, stream=True)
client.receive()
server.process.send_signal(signal.SIGINT)
wait_until(lambda: not os.path.exists(server.path), "end of the socket's file")
status, said = server.stop(signal.SIGINT)
print("second:", signal.Signals(-status).name)
os.rmdir(server.directory)
