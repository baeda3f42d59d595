#!/usr/bin/env python3
"""Stands in for `python -m fieldstone._helper` in the tests of ingest: a file is a list of [deed, payload].

A deed is a frame's header, or {"signal": n}, {"exit": n}, {"sleep": seconds}, {"raw": text}.
"""

import json
import os
import struct
import sys
import time


def receive():
    start = sys.stdin.buffer.read(4)
    if not start:
        raise SystemExit(0)
    header = json.loads(sys.stdin.buffer.read(struct.unpack("<I", start)[0]))
    return header, sys.stdin.buffer.read(struct.unpack("<Q", sys.stdin.buffer.read(8))[0])


def send(header, payload=b""):
    text = json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(text)) + text + struct.pack("<Q", len(payload)) + payload)
    sys.stdout.buffer.flush()


def play(deeds):
    for deed, payload in deeds:
        if "signal" in deed:
            os.kill(os.getpid(), deed["signal"])
        elif "exit" in deed:
            print("first\nlast words", file=sys.stderr, flush=True)
            raise SystemExit(deed["exit"])
        elif "sleep" in deed:
            time.sleep(deed["sleep"])
        elif "raw" in deed:
            sys.stdout.buffer.write(deed["raw"].encode())
            raise SystemExit(0)
        else:
            send(deed, payload.encode())
            if deed["kind"] == "offer" and receive()[0]["op"] != "go":
                send({"kind": "done"})
                return
            if deed["kind"] == "error":
                return


while True:
    request, data = receive()
    assert request["protocol"] == 1
    if request["op"] == "ingest":
        with open(request["path"]) as file:
            play(json.load(file))
    elif request["op"] == "plot":
        play([({"kind": "image"}, data.decode()), ({"kind": "done"}, "")])
    elif data == b"bad":
        play([({"kind": "error", "error_kind": "Corrupt", "message": "no message", "hint": None}, "")])
    elif data == b"crash":
        play([({"signal": 11}, "")])
    else:
        play([({"kind": "field", "dtype": "<f8", "shape": [1]}, "12345678"), ({"kind": "done"}, "")])
