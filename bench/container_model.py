"""What parallel creation costs the largest rank: counted to 256 ranks, and beyond by a model.

`python bench/container_model.py` prints, for 1 to 4,096 ranks, what the model says of messages, bytes,
names and memory of the strategy `scalable`, beside counts of `container_counters.json` (made by
`cargo run --release -p fieldstone-array --example creation -- --ranks P`, one line for each P), and
the seconds that follow from a stated machine. `python/tests/test_container_model.py` holds the model to
the counts, within a tenth.

Counts follow from the algorithm. A rank of P tells each other rank the hashes and numbers of those of its
n/P names that the other owns, 12 bytes each and 48 before them; that alltoallv is P - 1 messages. The rest
are 12 trees of log2 P messages: nine agreements of 56 bytes, which carry the number of names of equal hash,
the number of the team, and one scan and one sum of 14 words. Owners of names have n/P of them but for chance:
of P owners the largest has some standard deviations more.

Seconds are those of a stated machine: a message costs LATENCY, a byte 1/BANDWIDTH, a name LOCAL on the
rank that has it. The alltoallv's P messages are our own term that grows: names a rank become fewer as P
grows, messages more, so that time is least where n * LOCAL / P = P * LATENCY, at about the square root of
n * LOCAL / LATENCY ranks, and rises beyond.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import ceil, log, log2, sqrt
from pathlib import Path

BENCH = Path(__file__).resolve().parent
COUNTED = BENCH / "container_counters.json"

LATENCY = 2e-6  # seconds a message: a fast network between nodes
BANDWIDTH = 10e9  # bytes a second and rank
LOCAL = (
    0.3e-6  # seconds a name on the rank that has it: definition, check and header, one rank of this machine
)

AGREEMENT = 56  # bytes
AGREEMENTS = 9
WORDS = 14  # in the scan of places
HEAD = 48  # bytes before the names that one rank tells another
RECORD = 12  # bytes of a name: hash and local number
PIECE = (1 << 20) + (1 << 17)  # bytes of the buffer of the header


@dataclass(frozen=True)
class DataSet:
    """What is created, by all ranks together."""

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


def most(share: float, ranks: int) -> float:
    """The largest of `ranks` shares that chance makes, each of `share` on average."""
    return share if ranks == 1 else share + sqrt(2 * log(ranks) * share)


def counters(data: DataSet, ranks: int) -> dict[str, float]:
    """Counts of the largest rank."""
    own = data.names / ranks
    owned = most(own, ranks)
    rounds = ceil(log2(ranks))
    trees = AGREEMENTS * AGREEMENT + 8 + 2 * 8 * WORDS
    told = RECORD * own * (ranks - 1) / ranks + HEAD * (ranks - 1)
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
        "sent": rounds * trees + told,
        "comparisons": owned,
        "names_held": own + owned,
        "peak_bytes": max(exchange, check, write),
    }


def seconds(data: DataSet, ranks: int) -> dict[str, float]:
    """Seconds on the stated machine, by what takes them."""
    counted = counters(data, ranks)
    return {
        "names": LOCAL * data.names / ranks,
        "messages": LATENCY * counted["messages"],
        "bytes": counted["sent"] / BANDWIDTH,
    }


def counted() -> list[dict[str, float]]:
    """Counts of real runs on threads, one for each number of ranks."""
    return [json.loads(line) for line in COUNTED.read_text().splitlines()]


def main() -> None:
    """Prints the model beside the counts."""
    runs = {int(run["ranks"]): run for run in counted()}
    print(
        f"{'ranks':>6} {'messages':>9} {'sent':>10} {'compared':>9} {'held':>9} {'peak bytes':>11}  (counted)"
    )
    for power in range(13):
        ranks = 1 << power
        told = counters(PAPER, ranks)
        keys = ("messages", "sent", "comparisons", "names_held", "peak_bytes")
        line = " ".join(
            f"{told[key]:>{width}.0f}" for key, width in zip(keys, (9, 10, 9, 9, 11), strict=True)
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


if __name__ == "__main__":
    main()
