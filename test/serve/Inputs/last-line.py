"""last-line.py GROKRUN BUNDLE: clients that end what they send without a newline, and prints their answers."""
import socket
import sys

from serving import Client, Server

grokrun, bundle = sys.argv[1:]
with Server(grokrun, bundle) as server:
    for last in ('{"id":1,"ids":[5],"max_new_tokens":1}\n{"id":2,"ids":[5],"max_new_tokens":1}', '{"ids":[5],', ""):
        client = Client(server)
        client.socket.sendall(last.encode())
        client.socket.shutdown(socket.SHUT_WR)
        print(client.file.read() or "nothing\n", end="")
