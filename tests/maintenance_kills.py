"""Kills maintenance at its system calls, one after another, beside writers that go on.

    python tests/maintenance_kills.py [--kills 2000] [--writers 4] [--seed 1] [--folder DIR]

Each round runs one verb of the program under strace, which kills it at the n-th call of a kind: compact,
purge, maintain, wipe, remove, erase, move, backup. After each kill everything that the writers were
acknowledged is there, or newer; a run that was wiped or removed is there as a whole or gone for good; a run
that moves is in one of the two stores; the backup, once it can be opened, holds no damage. The same verb then
ends its work without a kill. The call ends with 1 if anything of this does not hold, and prints the number of
kills of each verb and of each call as JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import soak

CALLS = (
    "openat",
    "pread64",
    "pwrite64",
    "pwritev",
    "write",
    "fdatasync",
    "fsync",
    "mkdir",
    "linkat",
    "unlinkat",
    "unlink",
    "rename",
    "renameat2",
    "newfstatat",
    "statx",
    "getdents64",
    "close",
    "fcntl",
    "sync_file_range",
    "copy_file_range",
    "ftruncate",
    "fallocate",
    "lseek",
)
VERBS = ("compact", "purge", "maintain", "wipe", "remove", "erase", "move", "backup")
GRACE = "5s"
FIELDS = 12
PROGRAM = str(Path(sys.executable).with_name("fieldstone"))
# Rounds between two looks at everything.
WHOLE = 100


class Failed(Exception):
    """Something that must hold does not."""


class Kills:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder, self.dice = options, folder, random.Random(options.seed)
        self.store, self.other, self.copy = folder / "store", folder / "other", folder / "copy"
        self.killed: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        # Of a verb and a call, the greatest number that is worth a try.
        self.most: dict[tuple[str, str], int] = {}
        self.gone: list[str] = []
        self.moved: list[str] = []
        self.rounds = 0
        self.writers = [self.writer(n) for n in range(options.writers)]

    def writer(self, number: int) -> subprocess.Popen[bytes]:
        seed = str(self.dice.getrandbits(32))
        role = ["write", str(self.folder), str(number), str(self.options.writers), seed]
        return subprocess.Popen([sys.executable, soak.__file__, "--child", *role])

    # ---- a round

    def arguments(self, verb: str, run: str) -> list[str]:
        store = str(self.store)
        match verb:
            case "compact" | "maintain":
                return [verb, store, "--grace", GRACE]
            case "purge":
                return [verb, store, "--all", "--doit", "--grace", GRACE]
            case "erase":
                writer = self.dice.randrange(self.options.writers)
                return [verb, store, f"run=w{writer}", "--doit"]
            case "move":
                return [verb, store, f"run={run}", "--to", str(self.other), "--versions"]
            case "backup":
                return [verb, store, str(self.copy)]
            case _:
                return [verb, store, f"run={run}", "--doit"]

    def round(self) -> None:
        self.rounds += 1
        verb, call = self.dice.choice(VERBS), self.dice.choice(CALLS)
        run = f"{verb}{self.rounds}"
        if verb in ("wipe", "remove", "move"):
            self.archive(run)
        arguments = self.arguments(verb, run)
        most = self.most.get((verb, call), 16)
        if most == 0:
            return
        number = self.dice.randint(1, most)
        inject = f"inject={call}:signal=SIGKILL:when={number}"
        strace = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", inject]
        ended = subprocess.run([*strace, PROGRAM, *arguments], capture_output=True, text=True, check=False)
        if ended.returncode in (-9, 137):
            self.killed[f"verb {verb}"] += 1
            self.killed[f"call {call}"] += 1
            self.most[verb, call] = max(most, 2 * number)
        else:
            self.most[verb, call] = min(most, number - 1)
            self.counts["not killed"] += 1
            self.expect(ended, arguments)
        self.check_writers()
        self.check_run(verb, run)
        again = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
        # Fields that are gone already are fields that nobody has.
        if not (verb == "move" and again.returncode == 3):
            self.expect(again, arguments)
        self.check_run(verb, run, is_done=True)
        if self.rounds % WHOLE == 0:
            self.check_all()

    def expect(self, ended: subprocess.CompletedProcess[str], arguments: list[str]) -> None:
        if ended.returncode != 0:
            raise Failed(f"{' '.join(arguments)}: exit {ended.returncode}: {ended.stderr[-2000:]}")

    def archive(self, run: str) -> None:
        import fieldstone

        with fieldstone.open(self.store, "a") as store:
            for step in range(FIELDS):
                key = {"run": run, "variable": f"v{step % 3}", "step": step}
                store.archive(key, f"{run} {step}".encode())
            store.flush()

    # ---- what must hold

    def steps(self, root: Path, run: str) -> set[int]:
        """The steps of a run that a store has, each with its content."""
        import fieldstone

        found: set[int] = set()
        try:
            store = fieldstone.open(root, "r")
        except fieldstone.NotFound:  # nothing was flushed there yet
            return found
        with store:
            for entry in store.list({"run": run}):
                step = int(entry.key["step"])
                if bytes(store.get(entry.key)) != f"{run} {step}".encode():
                    raise Failed(f"{run}, step {step}: other bytes")
                found.add(step)
        return found

    def check_run(self, verb: str, run: str, *, is_done: bool = False) -> None:
        whole = set(range(FIELDS))
        if verb in ("wipe", "remove"):
            here = self.steps(self.store, run)
            if here not in ((set(),) if is_done else (set(), whole)):
                raise Failed(f"{run}: steps {sorted(here)} are left")
            if is_done:
                self.gone.append(run)
        elif verb == "move":
            here, there = self.steps(self.store, run), self.steps(self.other, run)
            if here | there != whole or (is_done and (here or there != whole)):
                raise Failed(f"{run}: {sorted(here)} here, {sorted(there)} there, done: {is_done}")
            if is_done:
                self.moved.append(run)
        elif verb == "backup" and (is_done or self.backups_done()):
            self.expect(*self.verify(self.copy))
            self.counts["backups done"] += is_done

    def backups_done(self) -> bool:
        return self.counts["backups done"] > 0

    def verify(self, root: Path) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        command = ["verify", str(root)]
        return subprocess.run([PROGRAM, *command], capture_output=True, text=True, check=False), command

    def check_writers(self, most: int = 12) -> None:
        """The writers go on, and what was acknowledged is there; runs that went stay away."""
        import fieldstone

        with fieldstone.open(self.store, "r") as store:
            for number, writer in enumerate(self.writers):
                if writer.poll() is not None:
                    raise Failed(f"writer {number} ended with {writer.returncode}")
                known = soak.notes(self.folder / f"acknowledged-{number}")
                store.refresh()
                for key in self.dice.sample(sorted(known), min(len(known), most)):
                    there = bytes(store.get(soak.key_of(number, key)))
                    found = int(there.split(b" ", 3)[2])
                    if found < known[key] or there != soak.content(number, key, found):
                        raise Failed(f"writer {number}, key {key}: {found} after {known[key]}")
                    self.counts["fields read"] += 1
            runs = self.dice.sample(self.gone, min(len(self.gone), most))
            for run in runs:
                if any(True for _ in store.list({"run": run})):
                    raise Failed(f"{run} is back")

    def check_all(self) -> None:
        self.check_writers(soak.KEYS)
        self.expect(*self.verify(self.store))
        for run in self.moved:
            if len(self.steps(self.other, run)) != FIELDS:
                raise Failed(f"{run} is lost")
        files = sum(1 for path in self.store.rglob("*") if path.is_file())
        kills = sum(n for name, n in self.killed.items() if name.startswith("verb "))
        print(f"round {self.rounds}: {kills} kills, {files} files", flush=True)

    def run(self) -> None:
        try:
            while self.killed.total() // 2 < self.options.kills:
                self.round()
            self.check_all()
            if self.other.exists():
                self.expect(*self.verify(self.other))
        finally:
            for writer in self.writers:
                writer.kill()
                writer.wait()


def main() -> int:
    if shutil.which("strace") is None:
        print("strace is missing", file=sys.stderr)
        return 2
    about, *_ = (__doc__ or "").partition("\n")
    ap = argparse.ArgumentParser(description=about)
    ap.add_argument("--kills", type=int, default=2_000)
    ap.add_argument("--writers", type=int, default=4)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--folder", type=Path, help="where the store is made; a temporary folder without it")
    options = ap.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        import fieldstone

        with fieldstone.open(Path(folder) / "store", "a") as store:
            store.archive(soak.key_of(0, 0), soak.content(0, 0, 0))
            store.flush()
        kills, problem = Kills(options, Path(folder)), ""
        try:
            kills.run()
        except Failed as failed:
            problem = str(failed)
    flushes = kills.counts["fields read"]
    print(json.dumps({**dict(sorted(kills.killed.items())), **kills.counts, "rounds": kills.rounds}))
    print(problem or f"nothing is lost, {flushes} fields were read", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
