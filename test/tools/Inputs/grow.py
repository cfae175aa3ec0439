"""A checkpoint with a vocabulary 64 times as large, whose embedding is zeros that take no space: grow.py IN OUT."""
import json
import os
import struct
import sys

source, output = sys.argv[1:]
os.mkdir(output)
with open(f"{source}/config.json") as file:
    config = json.load(file)
config["vocab_size"] *= 64
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
embedding["shape"][0] *= 64
embedding["data_offsets"] = [len(data) - cut, len(data) - cut + 64 * cut]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(f"{output}/model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data[cut:])
    file.truncate(file.tell() + 64 * cut)
