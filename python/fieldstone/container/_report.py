"""The report of `enddef`."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Phase:
    """One phase: its name, its time on this rank, and its peak memory."""

    name: str
    seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class EnddefReport:
    """Report of `enddef` on this rank."""

    phases: tuple[Phase, ...]
    """Definition (time inside its calls), exchange, check, header write, and after closing, close."""
    comparisons: int
    """Pairs of names compared."""
    names_held: int
    """Names that this rank checked."""
    header_bytes_written: int
    """Bytes of the header that this rank wrote."""
    messages: int
    """Messages that this rank sent."""
    bytes_sent: int
    """Bytes that this rank sent to other ranks."""
    bytes_received: int
    """Bytes that it received from them."""

    @property
    def seconds(self) -> float:
        """Time of all phases."""
        return sum(phase.seconds for phase in self.phases)

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("comparisons", f"{self.comparisons}"),
            ("names held", f"{self.names_held}"),
            ("header bytes written", f"{self.header_bytes_written}"),
            ("messages", f"{self.messages}"),
            ("bytes sent, received", f"{self.bytes_sent}, {self.bytes_received}"),
        ]

    def __repr__(self) -> str:
        lines = [f"enddef: {self.seconds * 1e3:.3f} ms"]
        lines += [
            f"  {p.name:<20} {p.seconds * 1e3:10.3f} ms {p.peak_bytes:>14} bytes at most" for p in self.phases
        ]
        return "\n".join(lines + [f"  {name:<20} {value}" for name, value in self._facts()])

    def _repr_html_(self) -> str:
        rows = [(p.name, f"{p.seconds * 1e3:.3f} ms", f"{p.peak_bytes}") for p in self.phases]
        rows += [(name, value, "") for name, value in self._facts()]
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
        head = "<tr><th>phase</th><th>time</th><th>bytes at most</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
