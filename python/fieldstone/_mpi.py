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
import threading
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
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


Places = tuple[list[int], list[int]]
"""Addresses of parts, and their lengths in bytes."""

Joined = tuple[int, int, list[int]]
"""The address of parts that stand one after another, the bytes there, and how many of them each part has."""


def _apart(parts: Joined) -> Places:
    address, _, lengths = parts
    return [address + place for place in accumulate(lengths[:-1], initial=0)], lengths


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
        self.teams: Any = None
        """What its containers know of one another; the native module's."""
        comm.Set_errhandler(mpi.ERRORS_RETURN)
        vendor, version = mpi.get_vendor()
        self.reads_apart = vendor == "Open MPI" and (4, 1, 0) <= version < (4, 1, 5)
        """Whether ranks read by calls of their own where they read together: these versions leave out bytes
        that several ranks read in one collective call of OMPIO's."""

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

    def broadcast(self, root: int, data: bytes, length: int) -> bytearray:
        """The `length` bytes of `root`; all know how many."""
        (buffer,) = self._buffers(length, [length])
        view = memoryview(buffer)
        if self.rank == root:
            view[:] = data
        for begin in range(0, length, ROUND):
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

    def announce(self, lengths: list[int]) -> list[int]:
        """How many bytes each rank is about to send here."""
        incoming = array("Q", bytes(8 * self.size))
        self.comm.Alltoall([array("Q", lengths), self.mpi.UINT64_T], [incoming, self.mpi.UINT64_T])
        return list(incoming)

    def check_room(self, bound: int, has_room: bool) -> None:
        """Raises on all ranks where one has no memory. Collective where `bound`, equal on all, is large."""
        lacks = 0 if has_room else self.rank + 1
        if bound > LARGE:
            most = array("q", [lacks])
            self.comm.Allreduce(self.mpi.IN_PLACE, [most, self.mpi.INT64_T], self.mpi.MAX)
            lacks = most[0]
        if lacks:
            raise MemoryError(f"rank {lacks - 1} has no memory for a transfer of {bound} bytes")

    def move(self, source: Places, target: Places, longest: int) -> None:
        """Sends the bytes at each address of `source` to its rank, and takes what comes to those of `target`.

        Nothing is copied on the way: MPI is given the addresses. The caller keeps what is there until this
        returns.
        """
        chunk = max(1, ROUND // self.size)
        for begin in range(0, longest, chunk):
            send, receive = self._at(source, begin, chunk), self._at(target, begin, chunk)
            try:
                self.comm.Alltoallw(
                    [self.mpi.BOTTOM, [1] * self.size, [0] * self.size, send],
                    [self.mpi.BOTTOM, [1] * self.size, [0] * self.size, receive],
                )
            finally:
                for kind in send + receive:
                    kind.Free()

    def exchange(self, source: Joined, target: Joined, longest: int) -> None:
        """As `move`, of parts that stand one after another and whose lengths both ends know."""
        if longest * self.size > ROUND:
            self.move(_apart(source), _apart(target), longest)
            return
        ends = []
        for address, room, lengths in (source, target):
            counts, places = _chunks(lengths, 0, ROUND)
            ends.append([self.memory(address, room), counts, places, self.mpi.BYTE])
        self.comm.Alltoallv(*ends)

    def memory(self, address: int, length: int) -> Any:
        """The bytes at an address, which the caller keeps until the call returns."""
        # mpi4py 4 has another name for it.
        memory = getattr(self.mpi, "buffer", None) or self.mpi.memory
        return memory.fromaddress(address, length) if length else bytearray()

    def _at(self, places: Places, begin: int, chunk: int) -> list[Any]:
        """A type for each part: its bytes from `begin` on, `chunk` of them at most, where they are."""
        kinds = []
        for address, length in zip(*places, strict=True):
            count = min(chunk, max(0, length - begin))
            kind = self.mpi.BYTE.Create_hindexed([count], [address + begin if count else 0])
            kinds.append(kind.Commit())
        return kinds

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

    def _all(self, good: bool) -> bool:
        """Whether it is so on all ranks."""
        bad = array("q", [0 if good else 1])
        self.comm.Allreduce(self.mpi.IN_PLACE, [bad, self.mpi.INT64_T], self.mpi.MAX)
        return not bad[0]

    def host(self) -> str:
        """The name of the host that this rank runs on."""
        return self.mpi.Get_processor_name()

    def _opened(
        self, path: str, amode: int, hints: Sequence[tuple[str, str]]
    ) -> tuple[Any, BaseException | None, bool]:
        """A file or why there is none, and whether all ranks have it."""
        info = self.mpi.INFO_NULL
        if hints:
            info = self.mpi.Info.Create()
            for key, value in hints:
                info.Set(key, value)
        try:
            file, failed = self.mpi.File.Open(self.comm, path, amode, info), None
        except (self.mpi.Exception, MemoryError) as error:
            file, failed = None, error
        finally:
            if hints:
                info.Free()
        return file, failed, self._all(failed is None)

    def open(self, path: str, mode: str, hints: Sequence[tuple[str, str]] = ()) -> File:
        """Opens `path` on all ranks; `mode` is one of create, read, write. `hints` become an MPI_Info.

        Where a rank fails, the others get a file that is good for nothing, and are told by the agreement that
        follows every opening.
        """
        mpi = self.mpi
        amode = {
            "create": mpi.MODE_CREATE | mpi.MODE_EXCL | mpi.MODE_RDWR,
            "read": mpi.MODE_RDONLY,
            "write": mpi.MODE_RDWR,
        }[mode]
        file, failed, _ = self._opened(path, amode, hints)
        if failed is not None:
            raise failed
        again = amode & ~(mpi.MODE_CREATE | mpi.MODE_EXCL)
        return File(self, file, lambda: self._opened(path, again, hints))


class File:
    """A file that all ranks have open. `close` is collective, therefore nothing closes it by itself.

    A view changes what every offset of its handle means, for all threads, until it is taken back; so only a
    second handle, `viewed`, carries views. Collective calls of several parts use it, and the first of them
    opens it. One thread then reads and writes at offsets while another is in such a call, and waits for no
    other rank.
    """

    def __init__(
        self,
        communicator: Communicator,
        file: Any,
        again: Callable[[], tuple[Any, BaseException | None, bool]],
    ) -> None:
        self.communicator, self.file, self._again = communicator, file, again
        self.viewed: Any = None
        self.mpi = communicator.mpi
        self._change = threading.Condition()
        self._calls = 0
        self._closed = False

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Around each call: `close` waits for those that have begun, and refuses later ones."""
        with self._change:
            if self._closed:
                raise ValueError("the file was closed")
            self._calls += 1
        try:
            yield
        finally:
            with self._change:
                self._calls -= 1
                self._change.notify_all()

    def write_at(self, place: tuple[int, int], offset: int) -> None:
        """Writes the bytes at an address, as many as `place` says."""
        with self._using():
            self.file.Write_at(offset, [self.communicator.memory(*place), place[1], self.mpi.BYTE])

    def read_at(self, place: tuple[int, int], offset: int) -> int:
        """Reads to an address, and says how many bytes there were."""
        status = self.mpi.Status()
        with self._using():
            self.file.Read_at(offset, [self.communicator.memory(*place), place[1], self.mpi.BYTE], status)
        return status.Get_count(self.mpi.BYTE)

    def write_part(self, offset: int, data: bytes) -> None:
        """Collective: at most one part a rank."""
        with self._using():
            self.file.Write_at_all(offset, [data, len(data), self.mpi.BYTE])

    def read_part(self, offset: int, length: int) -> bytearray:
        """Collective: at most one part a rank."""
        buffer, failed = _buffer(length)
        read = self.file.Read_at if self.communicator.reads_apart else self.file.Read_at_all
        with self._using():
            read(offset, [buffer, len(buffer), self.mpi.BYTE])
        if failed is not None:
            raise failed
        return buffer

    def _handles(self) -> list[Any]:
        return [self.file] if self.viewed is None else [self.viewed, self.file]

    def write_parts(self, offsets: list[int], lengths: list[int], data: bytes) -> None:
        """Collective: the parts of `data` at ascending offsets, through a view."""
        self._view(offsets, lengths, lambda file, count: file.Write_all([data, count, self.mpi.BYTE]))

    def read_parts(self, offsets: list[int], lengths: list[int]) -> bytearray:
        """Collective: the parts at ascending offsets, joined, through a view."""
        buffer, failed = _buffer(sum(lengths))
        if failed is not None:
            offsets, lengths = [], []
        read = "Read" if self.communicator.reads_apart else "Read_all"
        self._view(offsets, lengths, lambda file, count: getattr(file, read)([buffer, count, self.mpi.BYTE]))
        if failed is not None:
            raise failed
        return buffer

    def _view(self, offsets: list[int], lengths: list[int], move: Callable[[Any, int], None]) -> None:
        """Calls `move` with the handle that has a view of these parts, and the number of their bytes.

        What fails on this rank before that is raised after it: the others wait for this rank in `move`, and
        it takes part with no byte.
        """
        byte = self.mpi.BYTE
        # A type of no bytes is no view: who has no part moves nothing through a plain one.
        view, count = byte, sum(lengths)
        failed: BaseException | None = None
        with self._using():
            if self.viewed is None:
                opened, failed, all_have = self._again()
                if failed is not None:
                    raise failed
                if not all_have:
                    raise OSError(errno.EIO, "another rank could not open the file for parts")
                self.viewed = opened
            try:
                if lengths:
                    view = byte.Create_hindexed(lengths, offsets)
                    view.Commit()
            except (self.mpi.Exception, MemoryError) as error:
                failed, count = error, 0
            try:
                self.viewed.Set_view(0, byte, view if failed is None else byte)
            except (self.mpi.Exception, MemoryError) as error:
                failed, count = failed or error, 0
            try:
                move(self.viewed, count)
            finally:
                if view is not byte:
                    view.Free()
        if failed is not None:
            raise failed

    def length(self) -> int:
        with self._using():
            return self.file.Get_size()

    def hints(self) -> list[tuple[str, str]]:
        """The hints in force."""
        with self._using():
            info = self.file.Get_info()
        if info == self.mpi.INFO_NULL:
            return []
        try:
            return list(info.items())
        finally:
            info.Free()

    def set_length(self, length: int) -> None:
        with self._using():
            self.file.Set_size(length)

    def _tried(self, calls: list[Callable[[], None]]) -> BaseException | None:
        """Makes collective calls, all of them whatever fails; gives the first failure."""
        first = None
        for call in calls:
            try:
                call()
            except (self.mpi.Exception, MemoryError) as error:
                first = first or error
        return first

    def sync(self) -> None:
        # The first hands over what this rank wrote; once all have done so, the second takes what others did.
        with self._using():
            syncs = [handle.Sync for handle in self._handles()]
            failed = self._tried([*syncs, self.communicator.barrier, *syncs])
        if failed is not None:
            raise failed

    def make_durable(self) -> None:
        with self._using():
            failed = self._tried([handle.Sync for handle in self._handles()])
        if failed is not None:
            raise failed

    def close(self) -> None:
        with self._change:
            if self._closed:
                raise ValueError("the file was closed")
            self._closed = True
            while self._calls:
                self._change.wait()
        failed = self._tried([handle.Close for handle in self._handles()])
        if failed is not None:
            raise failed


def _buffer(length: int) -> tuple[bytearray, MemoryError | None]:
    """A buffer, or an empty one and why."""
    try:
        return bytearray(length), None
    except MemoryError as error:
        return bytearray(), error


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
    number = numbers.get(error.Get_error_class())
    if number is not None:
        return number
    # ROMIO has one class for all other errors of the system, and says in its text what it was.
    said = error.Get_error_string()
    told = (number for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) if os.strerror(number) in said)
    return next(told, errno.EIO)


def absolute(path: str) -> str:
    """`path` as MPI is given it: what stands before a colon at its beginning would name a file system."""
    return os.path.abspath(path)
