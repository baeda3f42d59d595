"""Reports of the calls that look at a whole store: frozen records, whose repr is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path

from ._record import Record

_SHOWN = 5


def _bounded(name: str, values: tuple[object, ...]) -> str:
    more = f", … {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return f"{name}=({', '.join(map(repr, values[:_SHOWN]))}{more})"


class _Report(Record):
    """Base of all reports: a notebook shows them as tables."""

    def _repr_html_(self) -> str:
        from ._html import report

        return report(self)


class Damage(Record):
    """Damage that ``verify`` found: the field's key if it belongs to one, the file, and the reason."""

    key: str | None
    file: str
    why: str


class AcceptanceReport(Record):
    """A loss that a user accepted: the file, the part of it that is given up, the number of fields affected
    and the keys of some (as far as they are known), and who accepted it, when and why ("" if no reason was
    given).
    """

    file: str
    what: str
    fields: int
    keys: tuple[str, ...]
    user: str
    time: datetime
    why: str


class DatasetLock(Record):
    """A lock in force: the dataset, as the request that selects it; the calls that it forbids ("archive",
    "list", "retrieve" or "wipe"); the user who set it, and when.
    """

    dataset: str
    what: str
    by: str
    since: datetime


class HiddenFields(Record):
    """A hide in force: the datasets or indexes, as the request that selects them; the user who hid them, and
    when."""

    request: str
    by: str
    since: datetime


class HandOverReport(Record):
    """Report of ``fieldstone.hand_over``: the user who owned the datasets and runs, the user who owns them
    now, and the number of datasets with fields that changed hands."""

    old: str
    new: str
    datasets: int


class HandOverInfo(Record):
    """A hand-over on record: the user who owned what was handed over, the user to whom it was; the user who
    recorded it, and when."""

    old: str
    new: str
    by: str
    since: datetime


class OverlaidFields(Record):
    """An overlay in force: the fields, as the request that selects them by their own keys; the values under
    which they appear, too; the user who made it, and when."""

    request: str
    values: str
    by: str
    since: datetime


class ReindexReport(Record):
    """Report of ``store.reindex``: fields that the other store names now; whether purges leave all of them;
    and those that the other store cannot name, each with its key and the reason."""

    fields: int
    kept: bool
    left: tuple[tuple[str, str], ...] = ()


class PointedFields(Record):
    """Fields that another store names: the request that selects them, the id and the place of the other
    store, the user who recorded it, and when."""

    request: str
    store: str
    url: str
    by: str
    since: datetime


class VerifyReport(_Report):
    """Report of ``store.verify``: fields, bytes and files read, damage, notes, and accepted losses, which do
    not count as damage."""

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


class Stats(_Report):
    """Counts of the fields that a request selects, with bytes before compression and stored bytes after, and
    counts of the store."""

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


class CheckpointReport(_Report):
    """Report of ``store.checkpoint``: the version that the folder now holds, the new bytes and files, and the
    seconds it took."""

    version: str
    bytes: int
    files: int
    seconds: float


class LeftLog(Record):
    """A log that has ended and that ``compact`` left as it is: its file, the reason, and whether a user
    accepted its loss; then it stays, and nobody has to act."""

    file: str
    why: str
    accepted: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.why}"


class CompactReport(_Report):
    """Report of ``store.compact``: pairs (before, after) of the logs that a look at the store goes through,
    of the segments and takeovers that a lookup may search, and of the store's files; the bytes that were
    rewritten; the number of replaced files that stay until the grace is over (``waiting``); and the logs that
    were left (``left``)."""

    logs: tuple[int, int]
    segments: tuple[int, int]
    files: tuple[int, int]
    nbytes: int
    waiting: int = 0
    left: tuple[LeftLog, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no log was left because of damage."""
        return all(log.accepted for log in self.left)

    def __repr__(self) -> str:
        pairs = f"logs={self.logs}, segments={self.segments}, files={self.files}"
        return (
            f"CompactReport({pairs}, nbytes={self.nbytes}, waiting={self.waiting}, "
            f"{_bounded('left', self.left)})"
        )


class PurgeReport(_Report):
    """Report of ``store.purge``: fields of which hidden versions go, and the number of these versions
    (``versions``; pieces and removals count as well); the bytes that are given back; the number of files that
    nothing names any more (``condemned``), and of all files that stay until the grace is over (``waiting``);
    the store's files before and after; the reason why nothing may go, if there is one (``kept``); the logs
    that have to stay as they are (``left``); and whether another call could give back more (``more``)."""

    fields: int
    versions: int
    nbytes: int
    condemned: int
    waiting: int
    files: tuple[int, int]
    kept: str | None = None
    left: tuple[LeftLog, ...] = ()
    more: bool = False

    def __repr__(self) -> str:
        counts = ("fields", "versions", "nbytes", "condemned", "waiting", "files", "kept")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in counts)
        return f"PurgeReport({shown}, {_bounded('left', self.left)}, more={self.more})"


class ErasureReport(_Report):
    """Report of ``store.erase``: fields of which hidden versions go, and the number of these versions
    (``versions``; pieces and removals count as well); the number of attributes that go; the selected fields
    and attributes that stay, because they are visible (``visible``); the bytes that are given back; the
    number of files that are replaced or removed; places that may still hold it, each with a reason
    (``left``); and whether it was done."""

    fields: int
    versions: int
    attributes: int
    visible: int
    nbytes: int
    files: int
    left: tuple[LeftLog, ...] = ()
    done: bool = False

    def __repr__(self) -> str:
        counts = ("fields", "versions", "attributes", "visible", "nbytes", "files")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in counts)
        return f"ErasureReport({shown}, {_bounded('left', self.left)}, done={self.done})"


class WipeReport(_Report):
    """Report of ``store.wipe``: the fields that it hides and their bytes before compression; files in the
    store's folder that are not the store's (``foreign``), which stay; and whether it was done."""

    fields: int
    nbytes: int
    foreign: tuple[str, ...] = ()
    done: bool = False

    def __repr__(self) -> str:
        return (
            f"WipeReport(fields={self.fields}, nbytes={self.nbytes}, {_bounded('foreign', self.foreign)}, "
            f"done={self.done})"
        )


class BackupReport(_Report):
    """Report of ``fieldstone.backup``: the versions that the backup shows now and showed before (None if it
    is new), files and bytes that were copied, files that were removed because nothing in the backup needs
    them, what does not match its checksum in the source, and files that are not the store's and were not
    copied (``foreign``). ``held``: whether a hold kept all files in the source meanwhile.
    """

    version: str
    before: str | None
    files: int
    nbytes: int
    removed: int
    damaged: tuple[Damage, ...] = ()
    foreign: tuple[str, ...] = ()
    held: bool = True

    def __repr__(self) -> str:
        counts = ("files", "nbytes", "removed", "held")
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in counts)
        return (
            f"BackupReport({shown}, {_bounded('damaged', self.damaged)}, {_bounded('foreign', self.foreign)})"
        )


class MendedPart(_Report):
    """A part of a store's files that was mended, or would be: the field (None if the part belongs to none),
    the file, relative to the store's folder, and what is mended, from what."""

    key: str | None
    file: str
    how: str


class RepairReport(_Report):
    """Report of ``store.repair``: the mended parts; the damage that is left, as ``store.verify`` names it,
    and the reasons why parts of the backup were not taken; the bytes that were written; and whether it was
    done."""

    mended: tuple[MendedPart, ...] = ()
    left: tuple[Damage, ...] = ()
    nbytes: int = 0
    done: bool = False

    def __repr__(self) -> str:
        parts = (_bounded("mended", self.mended), _bounded("left", self.left))
        return f"RepairReport({', '.join(parts)}, nbytes={self.nbytes}, done={self.done})"


class HoldInfo(_Report):
    """A hold in force: its name, the reason, the user who set it, when, until when it stands, and the version
    of the store for which it was set."""

    name: str
    why: str
    by: str
    since: datetime
    until: datetime
    version: str


class RetentionRule(_Report):
    """A rule of retention: the request whose fields it is about ("" means everything), or the query under
    whose hits they are; the store to which they move (None: they are wiped), from which age on, the number of
    versions of each that stay, the user who made it, and when."""

    request: str
    older_than: timedelta | None
    versions: int | None
    owner: str
    since: datetime
    query: str | None = None
    to: str | None = None


class MaintainStep(_Report):
    """A step of ``store.maintain``: ``action`` is "move" or "wipe" (by the rule with this ``request``, or
    query), "sweep" (removes files that nothing names), "purge" or "compact". If it was left, ``done`` is
    False, ``why`` says why, and the counts are estimates.

    ``fields`` and ``versions`` go, and ``nbytes`` come back: at once or after a grace; after a wipe by a
    later purge. ``files`` are not needed any more, ``rewritten`` bytes were written again, in ``seconds``.
    ``code`` names the error that ended it.
    """

    action: str
    request: str | None = None
    done: bool = False
    fields: int = 0
    versions: int = 0
    nbytes: int = 0
    files: int = 0
    rewritten: int = 0
    seconds: float = 0.0
    why: str | None = None
    code: str | None = None


class MaintainReport(_Report):
    """Report of ``store.maintain``: its steps, the number of files that stay until the grace is over
    (``waiting``), and whether another call could do more (``more``)."""

    steps: tuple[MaintainStep, ...]
    waiting: int = 0
    more: bool = False

    @property
    def ok(self) -> bool:
        """Whether no step ended with an error."""
        return all(step.code is None for step in self.steps)

    def __repr__(self) -> str:
        shown = _bounded("steps", self.steps)
        return f"MaintainReport(ok={self.ok}, {shown}, waiting={self.waiting}, more={self.more})"


class Advice(Record):
    """A command worth running, and what it would gain. ``estimate``: whether the numbers are estimates."""

    command: str
    gain: str
    estimate: bool = False

    def __str__(self) -> str:
        return f"{self.command}: {self.gain}"


class WriterStatus(Record):
    """One writer: its id, host, process and user. Its state is "open", "closed", "ended" (somebody else ended
    its log), "gone" (a process of this host ended without closing) or "silent" (one on another host has not
    written for an hour).

    ``clock_offset``: seconds by which its clock is ahead, if it is off by a minute or more; ``tail``: bytes
    after its last commit; ``attempt``, ``job`` and ``rank``: its execution, job and rank, if it named an
    attempt.
    """

    writer: str
    host: str
    process: int
    user: str
    state: str
    commits: int
    segments: int
    last_flush: datetime
    clock_offset: float | None
    tail: int
    attempt: str | None = None
    job: str | None = None
    rank: int | None = None


class TransactionStatus(Record):
    """An undecided transaction: who flushed into it, how many fields, and since when."""

    id: str
    owners: tuple[str, ...]
    fields: int
    since: datetime


class Problem(str):
    """A problem of a store, as text. ``code``: an error code, None if it is only information; ``file``:
    relative to the store's folder, "" if several are affected; ``why``: the reason."""

    code: str | None
    file: str
    why: str

    def __new__(cls, text: str, code: str | None, file: str, why: str) -> Problem:
        problem = super().__new__(cls, text)
        problem.code, problem.file, problem.why = code, file, why
        return problem

    def __getnewargs__(self) -> tuple[str, str | None, str, str]:
        return str(self), self.code, self.file, self.why


class Status(_Report):
    """Report of ``store.status``. ``id`` is None before the first flush.

    ``code`` is the program's exit code: 0, or that of the worst of ``problems``. ``format_pinned``: the user
    who pinned the version of the format, and when. ``accepted``: accepted losses. ``free_inodes``: the number
    of files that can still be created, None if unknown. ``bytes_by_user``: bytes of each user's files.
    ``advice``: commands worth running for this user.
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
    advice: tuple[Advice, ...] = ()

    def __repr__(self) -> str:
        many = ("writers", "transactions", "owners", "problems")
        shown = ", ".join(_bounded(name, getattr(self, name)) for name in many)
        return (
            f"Status(url={self.url!r}, id={self.id!r}, schema={self.schema!r}, format={self.format}, "
            f"code={self.code}, {shown}, free_bytes={self.free_bytes}, unflushed={self.unflushed})"
        )


class Taken(Record):
    """A file that ``ingest`` took: the number of fields that the store did not have before, their bytes, the
    number of fields and meshes that it already had with equal bytes, and the number of new meshes and of new
    vertices and relations of the graph. `key`: the part that the keys of its fields have in common: the run
    of a netCDF file, or the keywords that all messages of a GRIB file share. As a request it selects this
    file: ``"!*"`` stands for a keyword that other files of the ingest have and this one lacks."""

    path: Path
    fields: int
    bytes: int
    unchanged: int
    relations: int = 0
    meshes: int = 0
    key: Mapping[str, str] = field(default_factory=dict)


class XdmfReport(_Report):
    """Report of ``run.to_xdmf``: its files (the text first), variables and steps; and variables at steps that
    it does not show, with the reason."""

    files: tuple[Path, ...]
    variables: tuple[str, ...]
    steps: tuple[int, ...]
    omitted: tuple[tuple[str, str], ...] = ()


class Skipped(Record):
    """An item that ``ingest`` skipped: a part of a file, or "the file", "the folder", "the pattern", and
    why."""

    path: Path
    what: str
    why: str

    @property
    def whole(self) -> bool:
        """Whether the whole file was skipped."""
        return self.what in ("the file", "the folder", "the pattern")

    def __str__(self) -> str:
        return f"{self.path}: {self.what}: {self.why}"


class IngestReport(_Report):
    """Report of ``ingest``, in the order of the files; ``print`` shows it grouped by reason, with totals.

    `files`: the number of files named, directly or by folders and patterns; `done`: how many of them were
    examined, which is all unless the ingest ended early.
    """

    taken: tuple[Taken, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    files: int = 0
    done: int = 0

    @property
    def fields(self) -> int:
        """The number of fields that the store did not have before."""
        return sum(taken.fields for taken in self.taken)

    @property
    def nbytes(self) -> int:
        """Their bytes."""
        return sum(taken.bytes for taken in self.taken)

    @property
    def reasons(self) -> dict[str, tuple[Skipped, ...]]:
        """Skipped items grouped by reason: whole files before parts of files."""
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


class LeftBehind(Record):
    """Items of one kind that ``copy`` or ``move`` did not take along: ``kind`` is "run", "step", "variable",
    "tag", "attribute", "group", "import" or "mesh"; `names` are the first of their names (of steps their
    numbers, of attributes their tags)."""

    kind: str
    count: int
    names: tuple[str, ...]
    why: str


class Unreadable(Record):
    """A field that cannot be read: its key, and the reason, which names the file at fault."""

    key: str
    why: str


class PrefetchReport(_Report):
    """Report of ``store.prefetch``: the fields that were read and their bytes, and those that cannot be read
    (``damaged``)."""

    fields: int
    nbytes: int
    damaged: tuple[Unreadable, ...] = ()

    def __repr__(self) -> str:
        damaged = f", {_bounded('damaged', self.damaged)}" if self.damaged else ""
        return f"PrefetchReport(fields={self.fields}, nbytes={self.nbytes}{damaged})"


class TransferReport(_Report):
    """Report of ``copy`` or ``move``: the number of fields that are new in the target, their bytes, and the
    number that it already had with equal elements; the number of their older values that went along, and of
    new attributes; metadata of the fields that
    was not taken along; fields that cannot be read (``damaged``), which stay in the source and are not in the
    target. For ``move`` also the number of fields removed from the source, and the keys of which the source
    keeps a newer version, written during the move."""

    fields: int
    bytes: int
    unchanged: int
    versions: int = 0
    attributes: int = 0
    removed: int = 0
    kept: tuple[str, ...] = ()
    left: tuple[LeftBehind, ...] = ()
    damaged: tuple[Unreadable, ...] = ()

    def __repr__(self) -> str:
        counts = f"fields={self.fields}, bytes={self.bytes}, unchanged={self.unchanged}"
        versions = f", versions={self.versions}" if self.versions else ""
        more = f"attributes={self.attributes}, removed={self.removed}"
        kept, left = _bounded("kept", self.kept), _bounded("left", self.left)
        damaged = f", {_bounded('damaged', self.damaged)}" if self.damaged else ""
        return f"TransferReport({counts}{versions}, {more}, {kept}, {left}{damaged})"


class ExportReport(_Report):
    """Report of ``store.export``: the files, their format, the fields they hold and the bytes of their
    values; and what a file lacks or changes, with the reasons. If several files are written, those that
    failed are listed as "the file"."""

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


class ArchiveReport(_Report):
    """Report of ``g.archive``: the versions of vertices and relations moved, or to be moved if not `done`,
    and the bytes of their properties. `others`: superseded versions of other users, which only they can move.
    """

    vertices: int
    relations: int
    bytes: int
    others: int
    done: bool


class DeleteReport(_Report):
    """Report of ``store.delete``: what it deleted, or would delete if not ``done``.

    `others`: attributes that stay, because other users wrote them in runs that do not belong to the caller.
    """

    runs: int
    steps: int
    variables: int
    tags: int
    attributes: int
    fields: int
    done: bool
    others: int = 0


class RebuildReport(_Report):
    """Report of ``store.rebuild``: what it read, and where the catalog's index is."""

    logs: int
    commits: int
    attributes: int
    fields: int
    engine: str
