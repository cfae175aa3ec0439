"""A checkpoint with a larger vocabulary, whose embedding is zeros that take no space: grow.py IN OUT [TIMES]."""
import json
import os
import struct
import sys

source, output = sys.argv[1:3]
times = int(sys.argv[3]) if len(sys.argv) > 3 else 64
os.mkdir(output)
with open(f"{source}/config.json") as file:
    config = json.load(file)
config["vocab_size"] *= times
with open(f"{output}/config.json", "w") as file:
    json.dump(config, file, indent=2)
with open(f"{source}/model.safetensors", "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
embedding = header["model.embed_tokens.weight"]
cut = embedding["data_offsets"][1]  # the embedding comes first; it becomes the last
assert embedding["data_offsets"][0] == 0
for name, tensor in header.items():
    if name != "__metadata__":
        tensor["data_offsets"] = [offset - cut for offset in tensor["data_offsets"]]
embedding["shape"][0] *= times
embedding["data_offsets"] = [len(data) - cut, len(data) - cut + times * cut]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(f"{output}/model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data[cut:])
    file.truncate(file.tell() + times * cut)
