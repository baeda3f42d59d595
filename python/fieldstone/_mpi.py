"""Ranks over mpi4py: what the native module calls when it is given a communicator.

Bytes in, bytes out, and no pickling. Every transfer goes in rounds of at most `ROUND` bytes a rank, because
counts and displacements of MPI are 32-bit integers in most builds of it. Ranks agree on the number of rounds
before the first. MPI calls release the interpreter's lock while they wait.

Memory for a large transfer is taken before ranks begin with it, and they agree that all have it: a rank that
has none must not leave the others in the middle.

The communicator that a user gives is duplicated once and kept with it, so that no message of theirs is taken
for one of ours.
"""

from __future__ import annotations

import errno
import os
import sys
from array import array
from typing import Any

from .errors import Invalid

ROUND = 1 << 30
"""The most bytes that one call of MPI moves to or from one rank."""

LARGE = 1 << 20
"""Transfers of more bytes than this are agreed upon first."""

_keyval: Any = None


def communicator(comm: Any) -> Communicator:
    """The ranks of `comm`, a communicator of mpi4py. Collective the first time."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Intracomm) or comm == mpi.COMM_NULL:
        raise Invalid(
            f"comm= is {type(comm).__qualname__}, which is no communicator of mpi4py",
            "pass mpi4py.MPI.COMM_WORLD or a part of it, or leave comm= out for one process",
        )
    global _keyval
    if _keyval is None:
        _keyval = mpi.Comm.Create_keyval(delete_fn=lambda _comm, _keyval, ours: ours.comm.Free())
    ours = comm.Get_attr(_keyval)
    if ours is None:
        ours = Communicator(comm.Dup(), mpi)
        comm.Set_attr(_keyval, ours)
    return ours


def _chunks(lengths: list[int], begin: int, chunk: int) -> tuple[list[int], list[int]]:
    """How much of each part goes in the round that begins at `begin` of each, and where it stands."""
    counts = [min(chunk, max(0, length - begin)) for length in lengths]
    places, at = [], 0
    for count in counts:
        places.append(at)
        at += count
    return counts, places


class Communicator:
    """Collectives over bytes. Lists are in the order of ranks."""

    def __init__(self, comm: Any, mpi: Any) -> None:
        self.comm, self.mpi = comm, mpi
        self.rank: int = comm.rank
        self.size: int = comm.size
        comm.Set_errhandler(mpi.ERRORS_RETURN)

    def barrier(self) -> None:
        self.comm.Barrier()

    def _buffers(self, bound: int, lengths: list[int]) -> list[bytearray]:
        """Buffers of these lengths. Collective where `bound`, the same on all ranks, is large."""
        if bound <= LARGE:
            return [bytearray(length) for length in lengths]
        buffers, lacks = [], 0
        try:
            buffers = [bytearray(length) for length in lengths]
        except MemoryError:
            lacks = self.rank + 1
        most = array("q", [lacks])
        self.comm.Allreduce(self.mpi.IN_PLACE, [most, self.mpi.INT64_T], self.mpi.MAX)
        if most[0]:
            raise MemoryError(f"rank {most[0] - 1} has no memory for a transfer of {bound} bytes")
        return buffers

    def broadcast(self, root: int, data: bytes) -> bytearray:
        length = array("Q", [len(data)])
        self.comm.Bcast([length, self.mpi.UINT64_T], root)
        (buffer,) = self._buffers(length[0], [length[0]])
        view = memoryview(buffer)
        if self.rank == root:
            view[:] = data
        for begin in range(0, length[0], ROUND):
            part = view[begin : begin + ROUND]
            self.comm.Bcast([part, len(part), self.mpi.BYTE], root)
        return buffer

    def gather(self, root: int, data: bytes) -> list[bytearray]:
        return self._gather(data, root)

    def allgather(self, data: bytes) -> list[bytearray]:
        return self._gather(data, None)

    def _gather(self, data: bytes, root: int | None) -> list[bytearray]:
        """The bytes of each rank, on `root` or on all."""
        known = array("Q", bytes(8 * self.size))
        own = [array("Q", [len(data)]), self.mpi.UINT64_T]
        self.comm.Allgather(own, [known, self.mpi.UINT64_T])
        lengths = list(known)
        receives = root is None or root == self.rank
        chunk = max(1, ROUND // self.size)
        first, _ = _chunks(lengths, 0, chunk)
        buffer, *parts = self._buffers(sum(lengths), [sum(first), *lengths] if receives else [0])
        for begin in range(0, max(lengths), chunk):
            counts, places = _chunks(lengths, begin, chunk)
            here = memoryview(data)[begin : begin + counts[self.rank]]
            send = [here, len(here), self.mpi.BYTE]
            receive = [buffer, counts, places, self.mpi.BYTE] if receives else None
            if root is None:
                self.comm.Allgatherv(send, receive)
            else:
                self.comm.Gatherv(send, receive, root)
            for part, count, place in zip(parts, counts, places, strict=False):
                part[begin : begin + count] = memoryview(buffer)[place : place + count]
        return parts

    def alltoallv(self, parts: list[bytes]) -> list[bytearray]:
        lengths = [len(part) for part in parts]
        incoming = array("Q", bytes(8 * self.size))
        self.comm.Alltoall([array("Q", lengths), self.mpi.UINT64_T], [incoming, self.mpi.UINT64_T])
        longest = array("Q", [max(lengths)])
        self.comm.Allreduce(self.mpi.IN_PLACE, [longest, self.mpi.UINT64_T], self.mpi.MAX)
        chunk = max(1, ROUND // self.size)
        first, _ = _chunks(list(incoming), 0, chunk)
        sent, _ = _chunks(lengths, 0, chunk)
        sizes = [sum(sent), sum(first), *incoming]
        outgoing, buffer, *received = self._buffers(longest[0] * self.size, sizes)
        for begin in range(0, longest[0], chunk):
            sent, send_places = _chunks(lengths, begin, chunk)
            counts, places = _chunks(list(incoming), begin, chunk)
            for part, count, place in zip(parts, sent, send_places, strict=True):
                outgoing[place : place + count] = memoryview(part)[begin : begin + count]
            self.comm.Alltoallv(
                [outgoing, sent, send_places, self.mpi.BYTE], [buffer, counts, places, self.mpi.BYTE]
            )
            for part, count, place in zip(received, counts, places, strict=True):
                part[begin : begin + count] = memoryview(buffer)[place : place + count]
        return received

    def exscan(self, values: bytes) -> bytearray:
        """Sums over the lower ranks of each of some 64-bit integers; zeros on rank 0."""
        sums = bytearray(len(values))
        self.comm.Exscan([values, self.mpi.UINT64_T], [sums, self.mpi.UINT64_T], self.mpi.SUM)
        return sums if self.rank > 0 else bytearray(len(values))

    def allreduce(self, reduce: str, values: bytes) -> bytearray:
        """The sum or maximum over all ranks of each of some 64-bit integers."""
        joined = bytearray(len(values))
        op = self.mpi.MAX if reduce == "max" else self.mpi.SUM
        self.comm.Allreduce([values, self.mpi.UINT64_T], [joined, self.mpi.UINT64_T], op)
        return joined

    def open(self, path: str, mode: str) -> File:
        """Opens `path` on all ranks; `mode` is one of create, read, write."""
        mpi = self.mpi
        amode = {
            "create": mpi.MODE_CREATE | mpi.MODE_EXCL | mpi.MODE_RDWR,
            "read": mpi.MODE_RDONLY,
            "write": mpi.MODE_RDWR,
        }[mode]
        return File(self, mpi.File.Open(self.comm, path, amode))


class File:
    """A file that all ranks have open. `close` is collective, therefore nothing closes it by itself."""

    def __init__(self, communicator: Communicator, file: Any) -> None:
        self.communicator, self.file = communicator, file
        self.mpi = communicator.mpi

    def write_at(self, data: bytes, offset: int) -> None:
        self.file.Write_at(offset, [data, len(data), self.mpi.BYTE])

    def read_at(self, length: int, offset: int) -> bytearray:
        buffer, status = bytearray(length), self.mpi.Status()
        self.file.Read_at(offset, [buffer, length, self.mpi.BYTE], status)
        del buffer[status.Get_count(self.mpi.BYTE) :]
        return buffer

    def write_part(self, offset: int, data: bytes) -> None:
        """Collective: at most one part a rank."""
        self.file.Write_at_all(offset, [data, len(data), self.mpi.BYTE])

    def read_part(self, offset: int, length: int) -> bytearray:
        """Collective: at most one part a rank."""
        buffer = bytearray(length)
        self.file.Read_at_all(offset, [buffer, length, self.mpi.BYTE])
        return buffer

    def write_parts(self, offsets: list[int], lengths: list[int], data: bytes) -> None:
        """Collective: the parts of `data` at ascending offsets, through a view."""
        self._view(offsets, lengths, lambda: self.file.Write_all([data, len(data), self.mpi.BYTE]))

    def read_parts(self, offsets: list[int], lengths: list[int]) -> bytearray:
        """Collective: the parts at ascending offsets, joined, through a view."""
        buffer = bytearray(sum(lengths))
        self._view(offsets, lengths, lambda: self.file.Read_all([buffer, len(buffer), self.mpi.BYTE]))
        return buffer

    def _view(self, offsets: list[int], lengths: list[int], act: Any) -> None:
        byte = self.mpi.BYTE
        # A type of no bytes is no view: who has no part moves nothing through a plain one.
        view = byte.Create_hindexed(lengths, offsets).Commit() if lengths else byte
        try:
            self.file.Set_view(0, byte, view)
            try:
                act()
            finally:
                self.file.Set_view(0, byte, byte)
        finally:
            if lengths:
                view.Free()

    def length(self) -> int:
        return self.file.Get_size()

    def set_length(self, length: int) -> None:
        self.file.Set_size(length)

    def sync(self) -> None:
        # The first hands over what this rank wrote; once all have done so, the second takes what others did.
        self.file.Sync()
        self.communicator.barrier()
        self.file.Sync()

    def close(self) -> None:
        self.file.Close()


def number_of(error: BaseException) -> int | None:
    """The operating system's number for an error of MPI; None where the error is not MPI's."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(error, mpi.Exception):
        return None
    numbers = {
        mpi.ERR_NO_SUCH_FILE: errno.ENOENT,
        mpi.ERR_FILE_EXISTS: errno.EEXIST,
        mpi.ERR_ACCESS: errno.EACCES,
        mpi.ERR_READ_ONLY: errno.EROFS,
        mpi.ERR_NO_SPACE: errno.ENOSPC,
        mpi.ERR_QUOTA: errno.EDQUOT,
        mpi.ERR_BAD_FILE: errno.EINVAL,
    }
    return numbers.get(error.Get_error_class(), errno.EIO)


def absolute(path: str) -> str:
    """`path` as MPI is given it: what stands before a colon at its beginning would name a file system."""
    return os.path.abspath(path)
