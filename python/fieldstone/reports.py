"""What the calls that look at a whole store give back: frozen records, bounded in their repr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_SHOWN = 5


def _bounded(name: str, values: tuple[object, ...]) -> str:
    more = f", … {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f"{name}=({', '.join(map(repr, values[:_SHOWN]))}{more})"


class _Report:
    """What all reports have: in a notebook they are tables."""

    def _repr_html_(self) -> str:
        from ._html import report

        return report(self)


@dataclass(frozen=True)
class Damage:
    """Something that ``verify`` found: the field's key where it belongs to one, the file, and why."""

    key: str | None
    file: str
    why: str


@dataclass(frozen=True)
class AcceptanceReport:
    """A loss that somebody accepted: the file, what is given up of it, how many fields that concerns and the
    keys of some, as far as they are known, and who accepted it, when and why ("" where nobody said)."""

    file: str
    what: str
    fields: int
    keys: tuple[str, ...]
    user: str
    time: datetime
    why: str


@dataclass(frozen=True, repr=False)
class VerifyReport(_Report):
    """The report of ``store.verify``: fields, bytes and files read, damage, notes, and losses that somebody
    accepted, which do not count as damage."""

    fields: int
    bytes: int
    files: int
    damaged: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    accepted: tuple[AcceptanceReport, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged

    def __repr__(self) -> str:
        read = f"fields={self.fields}, bytes={self.bytes}, files={self.files}"
        return (
            f"VerifyReport(ok={self.ok}, {read}, {_bounded('damaged', self.damaged)}, "
            f"{_bounded('notes', self.notes)})"
        )


@dataclass(frozen=True)
class Stats(_Report):
    """Counts of what a request selects: bytes before compression, stored bytes after; and of the store."""

    datasets: int
    indexes: int
    fields: int
    bytes: int
    stored_bytes: int
    masked: int
    writers: int
    segments: int
    file_bytes: int
    files: int


@dataclass(frozen=True)
class CheckpointReport(_Report):
    """What ``store.checkpoint`` wrote: the version the folder now holds, bytes and files that were new,
    and how many seconds it took."""

    version: str
    bytes: int
    files: int
    seconds: float


@dataclass(frozen=True)
class WriterStatus:
    """One writer: its id, host, process and user; state is "open", "closed", "gone" (a process of this host
    that ended without closing) or "silent" (one of another host that has not written for an hour).

    ``clock_off``: seconds its clock is ahead, where it is off by a minute or more; ``tail``: bytes behind
    its last commit; ``attempt``, ``job`` and ``rank``: of what execution of which job it is, where it named
    an attempt.
    """

    writer: str
    host: str
    process: int
    user: str
    state: str
    commits: int
    segments: int
    last_flush: datetime
    clock_off: float | None
    tail: int
    attempt: str | None = None
    job: str | None = None
    rank: int | None = None


@dataclass(frozen=True)
class TransactionStatus:
    """An undecided transaction: who flushed into it, how many fields, since when."""

    id: str
    owners: tuple[str, ...]
    fields: int
    since: datetime


class Problem(str):
    """Something that is wrong with a store, as text. ``code``: an error code, None where it is only worth
    knowing; ``file``: relative to the store's folder, "" where it concerns several; ``why``: the reason."""

    code: str | None
    file: str
    why: str

    def __new__(cls, text: str, code: str | None, file: str, why: str) -> Problem:
        problem = super().__new__(cls, text)
        problem.code, problem.file, problem.why = code, file, why
        return problem

    def __getnewargs__(self) -> tuple[str, str | None, str, str]:
        return str(self), self.code, self.file, self.why


@dataclass(frozen=True, repr=False)
class Status(_Report):
    """The report of ``store.status``; ``id`` is None before the first flush.

    ``code`` is the program's exit code: 0, or that of the worst of ``problems``. ``format_pinned``: who
    pinned the version of the format, and when. ``accepted``: losses that somebody accepted. ``free_inodes``:
    files that can still be made, None where nobody can say. ``bytes_by_user``: bytes of each user's files.
    """

    url: str
    id: str | None
    schema: str
    format: int
    version: str
    writers: tuple[WriterStatus, ...] = field(default=())
    transactions: tuple[TransactionStatus, ...] = field(default=())
    owners: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    code: int = 0
    format_pinned: tuple[str, datetime] | None = None
    accepted: tuple[AcceptanceReport, ...] = ()
    free_bytes: int = 0
    free_inodes: int | None = None
    bytes_by_user: Mapping[str, int] = field(default_factory=dict)
    unflushed: int = 0

    def __repr__(self) -> str:
        many = ("writers", "transactions", "owners", "problems")
        shown = ", ".join(_bounded(name, getattr(self, name)) for name in many)
        return (
            f"Status(url={self.url!r}, id={self.id!r}, schema={self.schema!r}, format={self.format}, "
            f"code={self.code}, {shown}, free_bytes={self.free_bytes}, unflushed={self.unflushed})"
        )


@dataclass(frozen=True)
class Taken:
    """A file that ``ingest`` took: how many fields the store has now and had not before, their bytes, how
    many it had already, equal in every byte (meshes, too), and how many vertices and relations of the graph,
    and meshes, are new; `key`: what the keys of its fields have in common, of a netCDF file its run, of GRIB
    what all messages say. As a request it selects this file: ``"!*"`` stands for a keyword that files beside
    it have and this one lacks."""

    path: Path
    fields: int
    bytes: int
    unchanged: int
    relations: int = 0
    meshes: int = 0
    key: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class XdmfReport(_Report):
    """What ``run.to_xdmf`` wrote: its files (the text first), variables and steps; and variables at steps
    that it does not show, with the reason."""

    files: tuple[Path, ...]
    variables: tuple[str, ...]
    steps: tuple[int, ...]
    left_out: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Skipped:
    """What ``ingest`` left out: a part of a file, or "the file", "the folder", "the pattern", and why."""

    path: Path
    what: str
    why: str

    @property
    def whole(self) -> bool:
        """Whether nothing of the file was taken."""
        return self.what in ("the file", "the folder", "the pattern")

    def __str__(self) -> str:
        return f"{self.path}: {self.what}: {self.why}"


@dataclass(frozen=True, repr=False)
class IngestReport(_Report):
    """What ``ingest`` did, in the order of the files; ``print`` shows it by reasons, with totals.

    `files`: how many were named, by themselves, by folders and patterns; `done`: how many of them were looked
    at, which are all unless the ingest ended early.
    """

    taken: tuple[Taken, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    files: int = 0
    done: int = 0

    @property
    def fields(self) -> int:
        """Fields that the store has now and had not before."""
        return sum(taken.fields for taken in self.taken)

    @property
    def nbytes(self) -> int:
        """Their bytes."""
        return sum(taken.bytes for taken in self.taken)

    @property
    def reasons(self) -> dict[str, tuple[Skipped, ...]]:
        """What was left out, by reasons: whole files before parts of files."""
        found: dict[str, list[Skipped]] = {}
        for skipped in sorted(self.skipped, key=lambda skipped: not skipped.whole):
            found.setdefault(skipped.why, []).append(skipped)
        return {why: tuple(held) for why, held in found.items()}

    def __repr__(self) -> str:
        counts = f"files={self.files}, fields={self.fields}, nbytes={self.nbytes}"
        return f"IngestReport({counts}, {_bounded('taken', self.taken)}, {_bounded('skipped', self.skipped)})"

    def __str__(self) -> str:
        lines = []
        for taken in self.taken:
            key = ",".join(f"{keyword}={value}" for keyword, value in taken.key.items())
            already = f", {taken.unchanged} there already" if taken.unchanged else ""
            under = f", under {key}" if key else ""
            lines.append(f"taken    {taken.path}: {taken.fields} fields, {taken.bytes} bytes{already}{under}")
        for why, held in self.reasons.items():
            named = ", ".join(str(s.path) if s.whole else f"{s.path}: {s.what}" for s in held[:_SHOWN])
            more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
            lines.append(f"skipped  {named}{more}: {why}")
        left = f"; {self.files - self.done} not looked at" if self.done < self.files else ""
        lines.append(
            f"in all   {len(self.taken)} of {self.files} files taken: {self.fields} new fields, "
            f"{self.nbytes} bytes{left}"
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class LeftBehind:
    """What of one kind ``copy`` or ``move`` left where it was: ``kind`` is "run", "step", "variable",
    "tag", "attribute", "group", "import" or "mesh"; `names` are the first of their names, of
    steps their numbers, of attributes their tags."""

    kind: str
    count: int
    names: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Unreadable:
    """A field that cannot be read: its key, and why, with the file at fault."""

    key: str
    why: str


@dataclass(frozen=True, repr=False)
class TransferReport(_Report):
    """What ``copy`` or ``move`` did: fields that the target has now and had not before, their bytes, and
    how many it had already, equal in every element; attributes that it has now and had not before; what
    stands on the fields and stayed behind; fields that cannot be read (``damaged``): they are not in the
    target, and in the source still. For ``move`` also how many fields the source has no more, and the
    keys under which it has a newer version, written meanwhile, that stayed."""

    fields: int
    bytes: int
    unchanged: int
    attributes: int = 0
    removed: int = 0
    kept: tuple[str, ...] = ()
    left: tuple[LeftBehind, ...] = ()
    damaged: tuple[Unreadable, ...] = ()

    def __repr__(self) -> str:
        counts = f"fields={self.fields}, bytes={self.bytes}, unchanged={self.unchanged}"
        more = f"attributes={self.attributes}, removed={self.removed}"
        kept, left = _bounded("kept", self.kept), _bounded("left", self.left)
        damaged = f", {_bounded('damaged', self.damaged)}" if self.damaged else ""
        return f"TransferReport({counts}, {more}, {kept}, {left}{damaged})"


@dataclass(frozen=True, repr=False)
class ExportReport(_Report):
    """What ``store.export`` wrote: the files, their format, the fields they hold and the bytes of their
    values; and what a file has not, or not as it was, with the reasons. Of several files, those that could
    not be written are there as "the file"."""

    files: tuple[Path, ...]
    format: str
    fields: int
    bytes: int
    skipped: tuple[Skipped, ...] = ()

    def __repr__(self) -> str:
        return (
            f"ExportReport({_bounded('files', self.files)}, format={self.format!r}, fields={self.fields}, "
            f"bytes={self.bytes}, {_bounded('skipped', self.skipped)})"
        )


@dataclass(frozen=True)
class ArchiveReport(_Report):
    """What ``g.archive`` moved or, where not `done`, would move: versions of vertices and relations, and the
    bytes of their properties. `others`: hidden versions of other users, which only they can move.
    """

    vertices: int
    relations: int
    bytes: int
    others: int
    done: bool


@dataclass(frozen=True)
class DeleteReport(_Report):
    """What ``store.delete`` deleted, or would have where it was not ``done``.

    `others`: attributes that stay, because other users wrote them in runs that are not the caller's.
    """

    runs: int
    steps: int
    variables: int
    tags: int
    attributes: int
    fields: int
    done: bool
    others: int = 0


@dataclass(frozen=True)
class RebuildReport(_Report):
    """What ``store.rebuild`` read, and where the catalog's index is."""

    logs: int
    commits: int
    attributes: int
    fields: int
    engine: str
