"""A soak of one store: writers, readers and maintenance at once, and every ten seconds one of them is killed.

    python tests/soak.py [--minutes 60] [--writers 16] [--readers 8] [--kill 10] [--folder DIR]

Each writer overwrites its own keys with rising numbers, and notes in a file of its own what a flush
acknowledged. Readers take a number from these notes before they read: an older one is a loss. `purge`,
`compact` and `maintain` run in turn with a grace of 20 s. The call ends with 1 if anything acknowledged was
lost, if a reader failed, or if `verify` finds damage at the end; it prints a line a minute with files, bytes
and memory, and the counts as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

KEYS, FIELDS, GRACE = 400, 20, 20
PAYLOAD = 2_048


def content(writer: int, key: int, number: int) -> bytes:
    """A value that says whose it is, and fills its length with bytes that follow from that."""
    head = f"{writer} {key} {number} ".encode()
    return head + random.Random(head).randbytes(PAYLOAD - len(head))


def key_of(writer: int, key: int) -> dict[str, object]:
    return {"run": f"w{writer}", "variable": f"v{key % 4}", "step": key // 4}


def notes(path: Path) -> dict[int, int]:
    """The newest acknowledged number of each key of a writer; a torn last line is none."""
    newest: dict[int, int] = {}
    for line in path.read_text().splitlines(keepends=True) if path.exists() else []:
        if line.endswith(".\n"):
            number, *keys = map(int, line.split()[:-1])
            newest.update(dict.fromkeys(keys, number))
    return newest


# ---- in the children


def write(folder: Path, writer: int, seed: int) -> None:
    import fieldstone

    dice, path = random.Random(seed), folder / f"acknowledged-{writer}"
    number = max(notes(path).values(), default=0) + 1_000
    with fieldstone.open(folder / "store", "a") as store, path.open("a") as acknowledged:
        # A line that the killed writer began.
        acknowledged.write("\n")
        while True:
            number += 1
            keys = dice.sample(range(KEYS), FIELDS)
            for key in keys:
                store.archive(key_of(writer, key), content(writer, key, number))
            store.flush()
            acknowledged.write(f"{number} {' '.join(map(str, keys))} .\n")
            acknowledged.flush()
            time.sleep(dice.random() * 0.2)


def read(folder: Path, writers: int, seed: int) -> None:
    import fieldstone

    dice = random.Random(seed)
    while True:
        with fieldstone.open(folder / "store", "r") as store:
            for _ in range(dice.randrange(1, 30)):
                writer = dice.randrange(writers)
                known = notes(folder / f"acknowledged-{writer}")
                store.refresh()
                for key in dice.sample(sorted(known), min(len(known), 20)):
                    there = bytes(store.get(key_of(writer, key)))
                    number = int(there.split(b" ", 3)[2])
                    assert there == content(writer, key, number), f"writer {writer}, key {key}: other bytes"
                    assert number >= known[key], f"writer {writer}, key {key}: {number} after {known[key]}"
                listed = sum(1 for _ in store.list({"run": f"w{writer}"}))
                assert listed >= len(known), f"writer {writer}: {listed} of {len(known)} fields"


def maintain(folder: Path, seed: int) -> None:
    import fieldstone

    dice = random.Random(seed)
    while True:
        with fieldstone.open(folder / "store", "a") as store:
            match dice.randrange(3):
                case 0:
                    store.compact(grace=GRACE)
                case 1:
                    store.purge(all=True, doit=True, grace=GRACE)
                case _:
                    store.maintain(grace=GRACE)
        time.sleep(1)


# ---- the parent


class Soak:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder, self.dice = options, folder, random.Random(options.seed)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        roles = [("write", n) for n in range(options.writers)] + [("read", n) for n in range(options.readers)]
        self.children = {role: self.start(*role) for role in [*roles, ("maintain", 0)]}

    def start(self, role: str, number: int) -> subprocess.Popen[str]:
        arguments = [
            role,
            str(self.folder),
            str(number),
            str(self.options.writers),
            str(self.dice.getrandbits(32)),
        ]
        self.counts[f"{role} started"] += 1
        command = [sys.executable, __file__, "--child", *arguments]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def look(self) -> None:
        """Starts again whoever ended; an end that nobody asked for is a failure."""
        for role, child in self.children.items():
            if child.poll() is not None:
                _, said = child.communicate()
                if child.returncode != -signal.SIGKILL:
                    self.failures.append(f"{role}: {child.returncode}: {said[-2000:]}")
                self.children[role] = self.start(*role)

    def kill(self) -> None:
        role = self.dice.choice(sorted(self.children))
        self.counts[f"{role[0]} killed"] += 1
        self.children[role].kill()

    def sample(self, minute: int) -> None:
        sizes = []
        for path in (self.folder / "store").rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        memory = 0
        for child in self.children.values():
            try:
                status = Path(f"/proc/{child.pid}/status").read_text()
            except OSError:
                continue
            memory += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        print(
            f"minute {minute}: {len(sizes)} files, {sum(sizes) >> 20} MiB, {memory >> 10} MiB of memory, "
            f"{len(self.failures)} failures",
            flush=True,
        )

    def run(self) -> None:
        end, minute, killed = time.monotonic() + self.options.minutes * 60, 0, time.monotonic()
        began = time.monotonic()
        while time.monotonic() < end and len(self.failures) < 10:
            time.sleep(0.5)
            self.look()
            if time.monotonic() - killed >= self.options.kill:
                killed = time.monotonic()
                self.kill()
            if time.monotonic() - began >= 60 * (minute + 1):
                minute += 1
                self.sample(minute)
        for child in self.children.values():
            child.kill()
            child.communicate()

    def check(self) -> None:
        """Everything acknowledged is there, or newer."""
        import fieldstone

        with fieldstone.open(self.folder / "store", "r") as store:
            report = store.verify()
            if not report.ok:
                self.failures.append(f"verify: {report}")
            for writer in range(self.options.writers):
                for key, known in notes(self.folder / f"acknowledged-{writer}").items():
                    there = bytes(store.get(key_of(writer, key)))
                    number = int(there.split(b" ", 3)[2])
                    self.counts["checked"] += 1
                    if number < known or there != content(writer, key, number):
                        self.failures.append(f"writer {writer}, key {key}: {number} after {known}")


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        role, folder, number, writers, seed = sys.argv[2:]
        match role:
            case "write":
                write(Path(folder), int(number), int(seed))
            case "read":
                read(Path(folder), int(writers), int(seed))
            case _:
                maintain(Path(folder), int(seed))
        return 0
    about, *_ = (__doc__ or "").partition("\n")
    ap = argparse.ArgumentParser(description=about)
    ap.add_argument("--minutes", type=float, default=60)
    ap.add_argument("--writers", type=int, default=16)
    ap.add_argument("--readers", type=int, default=8)
    ap.add_argument("--kill", type=float, default=10, help="seconds between two kills")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--folder", type=Path, help="where the store is made; a temporary folder without it")
    options = ap.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        import fieldstone

        # Made before many begin.
        with fieldstone.open(Path(folder) / "store", "a") as store:
            store.archive(key_of(0, 0), content(0, 0, 0))
            store.flush()
        soak = Soak(options, Path(folder))
        soak.run()
        soak.check()
    print(json.dumps({**soak.counts, "failures": len(soak.failures)}))
    print("\n".join(soak.failures), file=sys.stderr)
    return 1 if soak.failures else 0


if __name__ == "__main__":
    os._exit(main()) if sys.argv[1:2] == ["--child"] else sys.exit(main())
