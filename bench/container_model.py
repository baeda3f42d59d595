"""The cost of parallel creation for the largest rank: counted up to 256 ranks, and modelled beyond.

`python bench/container_model.py` prints, for 1 to 4,096 ranks, the messages, bytes, names and memory of the
strategy `scalable` by the model, next to the counts of `container_counters.json` (made by
`cargo run --release -p fieldstone-array --example creation -- --ranks P`, one line for each P), and
the seconds that follow for a stated machine. `python/tests/test_container_model.py` checks that the model
agrees with the counts within a tenth.

Counts follow from the algorithm. A rank of P sends each other rank the hashes and numbers of those of its
n/P names that the other owns, 12 bytes each and 48 before them; that alltoallv is P - 1 messages. The rest
are 12 trees of log2 P messages: nine agreements of 56 bytes, which carry the number of names of equal hash,
the number of the team, and one scan and one sum of 14 words. On average an owner has n/P names; the largest
of P owners has a few standard deviations more.

The model has two more checks, counted on a tenth of the data set at 1 to 64 ranks
(`container_checks.json`; the same program with `--variables 56848` and `--strategy library-hash:16384` or
`partitioned`):

- The paper's check by a hash table, by its Equation (2): each of n names in a table of H slots is
  compared with those that share its slot, n (n - 1) / 2H in all, on the one rank that gathers everything,
  whatever the number of ranks.
- The partitioned header. A rank sends its paths to the owners of their hashes, 16 bytes each and 1 back, and
  then 32 bytes a path for their index; it compares the paths that it owns. Names are compared only for paths
  that two ranks share: here the event in which one rank's part ends. The index table, 72 bytes a block and 48
  a rank, goes to all. These are five exchanges of P - 1 messages and 23 trees. Time falls to a plateau, at
  which messages weigh as much as names.

Seconds are those of a stated machine: a message costs LATENCY, a byte 1/BANDWIDTH, a name LOCAL on the
rank that has it. Our algorithm adds one growing term, the alltoallv's P messages: with growing P each rank
has fewer names but more messages, so that time is least if n * LOCAL / P = P * LATENCY, at about the square
root of n * LOCAL / LATENCY ranks, and rises beyond.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil, log, log2, sqrt
from pathlib import Path

BENCH = Path(__file__).resolve().parent
COUNTED = BENCH / "container_counters.json"
CHECKED = BENCH / "container_checks.json"

LATENCY = 2e-6  # seconds a message: a fast network between nodes
BANDWIDTH = 10e9  # bytes a second and rank
LOCAL = (
    0.3e-6  # seconds a name on the rank that has it: definition, check and header, measured on one rank here
)

COMPARE = 50e-9  # seconds a comparison of two names that share a slot: mostly a cache miss

AGREEMENT = 56  # bytes
AGREEMENTS = 9
WORDS = 14  # in the scan of places
HEAD = 48  # bytes before the names that one rank sends to another
RECORD = 12  # bytes of a name: hash and local number
PIECE = (1 << 20) + (1 << 17)  # bytes of the buffer of the header


@dataclass(frozen=True)
class DataSet:
    """The objects that all ranks create together."""

    dims: int
    vars: int
    text: int  # bytes of all names
    header: int  # bytes of the file's header
    dims_of_vars: int

    @property
    def names(self) -> int:
        return self.dims + self.vars


# The paper's data set, as `creation` makes it, and one ten times as large.
PAPER = DataSet(dims=852_720, vars=568_480, text=47_836_740, header=96_641_648, dims_of_vars=852_720)
LARGE = DataSet(
    *(10 * value for value in (PAPER.dims, PAPER.vars, PAPER.text, PAPER.header, PAPER.dims_of_vars))
)


# A tenth of it, on which the other two checks were counted.
TENTH = DataSet(dims=85_272, vars=56_848, text=4_783_674, header=9_664_208, dims_of_vars=85_272)
SLOTS, SLOTS_LARGE = 16_384, 1 << 20  # the paper's sizes of hash tables
EVENT = 8  # variables of an event, which is a path
BLOCK = 1 << 18  # bytes of a metadata block
DIM_NAME = 35  # bytes of a dimension's name


def most(share: float, ranks: int) -> float:
    """The expected largest of `ranks` random shares, each of `share` on average."""
    return share if ranks == 1 else share + sqrt(2 * log(ranks) * share)


def counters(data: DataSet, ranks: int) -> dict[str, float]:
    """Counts of the largest rank."""
    own = data.names / ranks
    owned = most(own, ranks)
    rounds = ceil(log2(ranks))
    trees = AGREEMENTS * AGREEMENT + 8 + 2 * 8 * WORDS
    sent = RECORD * own * (ranks - 1) / ranks + HEAD * (ranks - 1)
    definitions = data.text + 16 * data.dims + 25 * data.vars + 4 * data.dims_of_vars
    hashed = definitions / ranks + 8 * own
    placed = 8 * own + 16 * data.vars / ranks
    if ranks == 1:
        return {
            "messages": 0,
            "sent": 0,
            "comparisons": own,
            "names_held": own,
            "peak_bytes": hashed + 8 * own + placed + min(PIECE, data.header + 4096),
        }
    exchange = hashed + RECORD * owned + HEAD * ranks + RECORD * owned
    check = hashed + (RECORD + 8 + 4) * owned + placed
    write = hashed + 8 * owned + placed + min(PIECE, data.header / ranks + 4096)
    return {
        "messages": (AGREEMENTS + 3) * rounds + ranks - 1,
        "sent": rounds * trees + sent,
        "comparisons": owned,
        "names_held": own + owned,
        "peak_bytes": max(exchange, check, write),
    }


def hashed(data: DataSet, ranks: int, slots: int) -> dict[str, float]:
    """Counts of the largest rank if one gathers everything and checks it by a hash table of `slots`."""
    pairs = (data.dims * (data.dims - 1) + data.vars * (data.vars - 1)) / (2 * slots)
    packed = 17 * data.names + data.text + (4 + DIM_NAME) * data.dims_of_vars
    placed = 4 * data.names + 16 * data.vars
    others = (ranks - 1) / ranks
    return {
        "comparisons": pairs,
        "names_held": data.names,
        "sent": max(packed / ranks, placed * others) if ranks > 1 else 0,
        "received": packed * others,
    }


def partitioned(data: DataSet, ranks: int) -> dict[str, float]:
    """Counts of the largest rank with the partitioned header."""
    if ranks == 1:
        return {"messages": 0, "sent": 0, "comparisons": 0}
    paths, others = data.vars / EVENT / ranks, (ranks - 1) / ranks
    shared = (data.vars / ranks) % EVENT != 0
    names = EVENT * data.names / data.vars * others if shared else 0
    blocks = ceil(data.header / ranks / BLOCK)
    rounds, exchanges = ceil(log2(ranks)), 5 if shared else 3
    trees = (22 if shared else 20) * AGREEMENT * rounds
    table = (72 * blocks + 48) * (ranks - 1)
    sent = RECORD * names + (HEAD * (ranks - 1) if shared else 0)
    return {
        "messages": exchanges * (ranks - 1) + (exchanges + 18) * rounds,
        "sent": (16 + 1 + 32) * paths * others + trees + table + sent,
        "comparisons": most(paths, ranks) + names,
    }


def seconds_of_hashed(data: DataSet, ranks: int, slots: int) -> float:
    """Seconds of the rank that checks all names by a hash table."""
    counted = hashed(data, ranks, slots)
    names = LOCAL * data.names + COMPARE * counted["comparisons"]
    return names + counted["received"] / BANDWIDTH + LATENCY * 12 * ceil(log2(ranks))


def seconds_of_partitioned(data: DataSet, ranks: int) -> float:
    """Seconds of a rank with the partitioned header."""
    counted = partitioned(data, ranks)
    return LOCAL * data.names / ranks + LATENCY * counted["messages"] + counted["sent"] / BANDWIDTH


def seconds(data: DataSet, ranks: int) -> dict[str, float]:
    """Seconds on the stated machine, by their cause."""
    counted = counters(data, ranks)
    return {
        "names": LOCAL * data.names / ranks,
        "messages": LATENCY * counted["messages"],
        "bytes": counted["sent"] / BANDWIDTH,
    }


def counted() -> list[dict[str, float]]:
    """Counts of real runs on threads, one for each number of ranks."""
    return [json.loads(line) for line in COUNTED.read_text().splitlines()]


def checked(strategy: str) -> list[dict[str, float]]:
    """Counts of the check by a hash table ("LibraryHash") or of the partitioned header ("Partitioned")."""
    runs = [json.loads(line) for line in CHECKED.read_text().splitlines()]
    return [run for run in runs if run["strategy"].startswith(strategy)]


def print_checks() -> None:
    """Prints the check by a hash table and the partitioned header next to their counts, and their times."""
    for title, strategy, model in (
        (f"hash table of {SLOTS} slots", "LibraryHash", lambda ranks: hashed(TENTH, ranks, SLOTS)),
        ("partitioned header", "Partitioned", lambda ranks: partitioned(TENTH, ranks)),
    ):
        print(f"\n{title}, a tenth of the data set: model (counted)")
        for run in checked(strategy):
            counts = model(int(run["ranks"]))
            shown = ", ".join(f"{key} {value:.0f} ({run[key]})" for key, value in counts.items())
            print(f"{run['ranks']:>6} {shown}")
    sets = (("the paper's data set", PAPER, SLOTS), ("ten times as large", LARGE, SLOTS_LARGE))
    for title, data, slots in sets:
        times = {1 << power: seconds_of_partitioned(data, 1 << power) for power in range(13)}
        plateau = min(times, key=lambda ranks: times[ranks])
        ratios = {ranks: seconds_of_hashed(data, ranks, slots) / times[ranks] for ranks in (plateau, 4096)}
        print(f"\n{title}: the partitioned header is")
        print(f"{ratios[4096]:.0f} times as fast as the hash table at 4,096 ranks;")
        print(f"its plateau is at {plateau} ranks, {times[plateau] * 1e3:.1f} ms,", end=" ")
        print(f"{ratios[plateau]:.0f} times as fast")


def main() -> None:
    """Prints the model next to the counts."""
    runs = {int(run["ranks"]): run for run in counted()}
    print(
        f"{'ranks':>6} {'messages':>9} {'sent':>10} {'compared':>9} {'held':>9} {'peak bytes':>11}  (counted)"
    )
    for power in range(13):
        ranks = 1 << power
        counts = counters(PAPER, ranks)
        keys = ("messages", "sent", "comparisons", "names_held", "peak_bytes")
        line = " ".join(
            f"{counts[key]:>{width}.0f}" for key, width in zip(keys, (9, 10, 9, 9, 11), strict=True)
        )
        run = runs.get(ranks)
        seen = " ".join(str(run[key]) for key in keys) if run else "-"
        print(f"{ranks:>6} {line}  ({seen})")
    for name, data in (("the paper's data set", PAPER), ("ten times as large", LARGE)):
        best = round(sqrt(data.names * LOCAL / LATENCY))
        alone = sum(seconds(data, 1).values())
        print(f"\n{name}: seconds, least at about {best} ranks; a rank alone {alone:.3f}")
        print("every rank of `app` takes at least what a rank alone takes; the paper's format is 582 times")
        print("as fast as its baseline at 4,096 ranks, on data about ten times as large as its smaller set")
        for power in range(13):
            ranks = 1 << power
            parts = seconds(data, ranks)
            shown = ", ".join(f"{part} {value:.6f}" for part, value in parts.items())
            whole = sum(parts.values())
            print(f"{ranks:>6} {whole:.6f} ({shown}); {alone / whole:.0f} times one rank")
    print_checks()


if __name__ == "__main__":
    main()
