"""talk.py LINES GROKRUN BUNDLE [FLAG...]: sends the file's lines to a server, one after the other, and prints the last
line of each answer. "@long N" stands for a line of N bytes."""
import sys

from serving import Client, Server

lines, grokrun, bundle, *flags = sys.argv[1:]
with Server(grokrun, bundle, *flags) as server:
    client = Client(server)
    for line in open(lines, encoding="utf-8").read().splitlines():
        if line.startswith("@long "):
            line = "x" * int(line.split()[1])
        client.socket.sendall(line.encode() + b"\n")
        answer = client.file.readline()
        while '"event":"tokens"' in answer:
            print(answer, end="")
            answer = client.file.readline()
        print(answer, end="")
