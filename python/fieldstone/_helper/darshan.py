"""Records of a Darshan log, in parts: for ``fieldstone ingest`` (spec/helper-protocol.md, "Darshan").

Invariants:

* libdarshan-util never sees the user's file: it gets an unnamed copy, so that its handling of a damaged log
  affects only the copy, and a crash leaves nothing behind;
* numbers of records are 64-bit and stay whole numbers from the library to the frame;
* an error that the library reports is ``Corrupt``, never an early end.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from typing import TYPE_CHECKING

import darshan.backend.cffi_backend as backend
import numpy as np

from fieldstone._helper.files import open_plain
from fieldstone._helper.frames import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from fieldstone._helper.frames import Channel

ROWS = 4096
"""The number of records in a frame."""

NAMES = 1024
"""The number of names in a frame; they are paths, the longest of which must fit into one."""

COPY_BYTES = 1 << 20

PLAIN = (("READS",), ("WRITES",))
MODULES = {
    "POSIX": ("POSIX", *PLAIN),
    "STDIO": ("STDIO", *PLAIN),
    "MPI-IO": (
        "MPIIO",
        ("INDEP_READS", "COLL_READS", "SPLIT_READS", "NB_READS"),
        ("INDEP_WRITES", "COLL_WRITES", "SPLIT_WRITES", "NB_WRITES"),
    ),
    "H5D": ("H5D", *PLAIN),
    "PNETCDF_VAR": (
        "PNETCDF_VAR",
        ("INDEP_READS", "COLL_READS", "NB_READS"),
        ("INDEP_WRITES", "COLL_WRITES", "NB_WRITES"),
    ),
    "DFS": ("DFS", ("READS", "READXS", "NB_READS"), ("WRITES", "WRITEXS", "NB_WRITES")),
}
"""Modules that record reads and writes: prefix of their counters, those of reads, of writes."""

MOMENTS = (
    "READ_START",
    "READ_END",
    "WRITE_START",
    "WRITE_END",
    "OPEN_START",
    "CLOSE_END",
)


def darshan_request(channel: Channel, header: dict[str, Any], payload: bytes) -> None:
    """Answers ``darshan`` with ``darshan-job``, and ``darshan-names``, ``darshan-records`` in parts."""
    path = header.get("path")
    if path is None:
        path = os.fsdecode(payload)
    if not isinstance(path, str) or not path:
        raise RequestError("Invalid", "darshan needs a path")
    with tempfile.TemporaryFile() as copy:
        digest = _copy(path, copy)
        log = backend.log_open(f"/dev/fd/{copy.fileno()}")
        if log["handle"] == backend.ffi.NULL:
            raise _damaged("it does not begin like a complete log")
        try:
            _send(channel, log, digest)
        finally:
            backend.log_close(log)
    channel.done()


def _copy(path: str, copy: Any) -> str:
    """Copies the log; returns the digest of its bytes."""
    digest = hashlib.sha256()
    try:
        with open_plain(path) as file:
            while part := file.read(COPY_BYTES):
                digest.update(part)
                copy.write(part)
    except FileNotFoundError:
        hint, code = "check the path", "file-not-found"
        raise RequestError("NotFound", "No such file or directory", hint, code) from None
    except PermissionError:
        hint, code = "check the file's permissions", "permission-denied"
        raise RequestError("Denied", "Permission denied", hint, code) from None
    except IsADirectoryError:
        raise RequestError("Invalid", "not a regular file", code="file-kind") from None
    except OSError as error:
        raise RequestError("Unavailable", error.strerror or str(error), code="io-failed") from None
    copy.flush()
    copy.seek(0)
    return digest.hexdigest()


def _send(channel: Channel, log: dict[str, Any], digest: str) -> None:
    modules = backend.log_get_modules(log)
    channel.send({"kind": "darshan-job", "sha256": digest, **_job(log), **_states(modules)})
    names = _names(log)
    for first in range(0, len(names), NAMES):
        channel.send({"kind": "darshan-names", "names": names[first : first + NAMES]})
    for module in MODULES:
        if module not in modules:
            continue
        rows = []
        for row in _records(log, module, modules[module]["idx"]):
            rows.append(row)
            if len(rows) == ROWS:
                channel.send({"kind": "darshan-records", "module": module, "records": rows})
                rows = []
        if rows:
            channel.send({"kind": "darshan-records", "module": module, "records": rows})


def _job(log: dict[str, Any]) -> dict[str, Any]:
    """The job of the log. pydarshan does not check whether the library could read it."""
    job = backend.ffi.new("struct darshan_job *")
    if backend.libdutil.darshan_log_get_job(log["handle"], job) < 0:
        raise _damaged("its job cannot be read")
    line = backend.ffi.new("char[]", 4097)
    if backend.libdutil.darshan_log_get_exe(log["handle"], line) < 0:
        raise _damaged("the name of its program cannot be read")
    # The handle begins with the version of the log's format, as in pydarshan.
    version = backend.ffi.cast("char *", log["handle"])
    return {
        "number": job.jobid,
        "uid": job.uid,
        "nprocs": job.nprocs,
        "start": [job.start_time_sec, job.start_time_nsec],
        "end": [job.end_time_sec, job.end_time_nsec],
        "exe": _text(line),
        "version": backend.ffi.string(version, 8).decode("ascii", "replace"),
    }


def _states(modules: dict[str, Any]) -> dict[str, Any]:
    """Modules that ran out of room, and modules that this reader does not support."""
    return {
        "modules": list(modules),
        "partial": [name for name, facts in modules.items() if facts["partial_flag"] and name in MODULES],
    }


def _names(log: dict[str, Any]) -> list[tuple[int, str]]:
    """Numbers of records with their names, like pydarshan's, but also for names that are not UTF-8."""
    records = backend.ffi.new("struct darshan_name_record **")
    count = backend.ffi.new("int *")
    backend.libdutil.darshan_log_get_name_records(log["handle"], records, count)
    if count[0] < 0 or (count[0] > 0 and records[0] == backend.ffi.NULL):
        raise _damaged("the names of its files cannot be read")
    found = []
    for i in range(count[0]):
        found.append((records[0][i].id, _text(records[0][i].name)))
        backend.libdutil.darshan_free(records[0][i].name)
    if records[0] != backend.ffi.NULL:
        backend.libdutil.darshan_free(records[0])
    return found


def _records(log: dict[str, Any], module: str, index: int) -> Iterator[list[Any]]:
    """Records of a module: number, rank, reads, bytes read, writes, bytes written, six moments.

    A counter or a moment that is not recorded is -1; moments are seconds since the job's start.
    """
    prefix, reads, writes = MODULES[module]
    places = {name: i for i, name in enumerate(backend.counter_names(module))}
    moments = {name: i for i, name in enumerate(backend.fcounter_names(module))}
    counted = [
        [places[f"{prefix}_{name}"] for name in names]
        for names in (reads, ("BYTES_READ",), writes, ("BYTES_WRITTEN",))
    ]
    timed = [moments[f"{prefix}_F_{name}_TIMESTAMP"] for name in MOMENTS]
    # Datasets and variables have their own records; the file that contains them is an object of the graph.
    number = "file_rec_id" if module in ("H5D", "PNETCDF_VAR") else None
    buffer = backend.ffi.new("void **")
    while True:
        # If it is not null, the library takes it as its own buffer to fill.
        buffer[0] = backend.ffi.NULL
        state = backend.libdutil.darshan_log_get_record(log["handle"], index, buffer)
        if state < 0:
            raise _damaged(f"records of its module {module} cannot be read")
        if state == 0:
            return
        record = backend.ffi.cast(backend._structdefs[module], buffer)[0]
        counters = np.frombuffer(backend.ffi.buffer(record.counters), np.int64).tolist()
        floats = np.frombuffer(backend.ffi.buffer(record.fcounters), np.float64).tolist()
        base = record.base_rec
        row = [base.id if number is None else record.file_rec_id, base.rank]
        for group in counted:
            known = [counters[i] for i in group if counters[i] >= 0]
            row.append(min(sum(known), (1 << 63) - 1) if known else -1)
        row += [floats[i] if math.isfinite(floats[i]) else -1 for i in timed]
        backend.libdutil.darshan_free(buffer[0])
        yield row


def _text(characters: Any) -> str:
    return backend.ffi.string(characters).decode("utf-8", "backslashreplace")


def _damaged(what: str) -> RequestError:
    hint = "a job that is running or was killed leaves no complete log: ingest the log when it is complete"
    return RequestError("Corrupt", f"the Darshan log is damaged or not finished: {what}", hint)
