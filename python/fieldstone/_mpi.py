"""Ranks over mpi4py: the calls that the native module makes on a communicator.

Calls pass bytes, without pickling. Every transfer runs in rounds of at most `ROUND` bytes for each rank,
because MPI's counts and displacements are 32-bit integers in most builds. Ranks agree on the number of rounds
before the first. MPI calls release the interpreter's lock while they wait.

Ranks allocate memory for a large transfer before it begins, and agree that all have it: a rank without memory
must not leave the others waiting in the middle.

The communicator that a user gives is duplicated once, and the duplicate is kept with it, so that no user
message is mistaken for one of ours.
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
"""The maximum number of bytes that one MPI call moves to or from one rank."""

LARGE = 1 << 20
"""Ranks agree on memory first if a transfer has more bytes than this."""

_keyval: Any = None


def communicator(comm: Any) -> Communicator:
    """The ranks of `comm`, a communicator of mpi4py. Collective the first time."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Intracomm) or comm == mpi.COMM_NULL:
        raise Invalid(
            f"comm= is {type(comm).__qualname__}, which is not a communicator of mpi4py",
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
"""The address of adjacent parts, their total bytes, and the number of bytes of each part."""


def _apart(parts: Joined) -> Places:
    address, _, lengths = parts
    return [address + place for place in accumulate(lengths[:-1], initial=0)], lengths


def _chunks(lengths: list[int], begin: int, chunk: int) -> tuple[list[int], list[int]]:
    """The length and position of each part's bytes in the round that starts at `begin` of each."""
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
        """Knowledge that its containers share; used by the native module."""
        comm.Set_errhandler(mpi.ERRORS_RETURN)
        vendor, version = mpi.get_vendor()
        self.reads_apart = vendor == "Open MPI" and (4, 1, 0) <= version < (4, 1, 5)
        """Whether ranks that read together must use independent calls: in these versions of OMPIO, a
        collective read omits bytes that several ranks read."""

    def barrier(self) -> None:
        self.comm.Barrier()

    def _buffers(self, bound: int, lengths: list[int]) -> list[bytearray]:
        """Buffers of these lengths. Collective if `bound`, the same on all ranks, is large."""
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
        """The `length` bytes of `root`; all ranks know the length."""
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
        """The number of bytes that each rank is about to send to this one."""
        incoming = array("Q", bytes(8 * self.size))
        self.comm.Alltoall([array("Q", lengths), self.mpi.UINT64_T], [incoming, self.mpi.UINT64_T])
        return list(incoming)

    def check_room(self, bound: int, has_room: bool) -> None:
        """Raises on all ranks if one has no memory. Collective if `bound`, the same on all ranks, is
        large."""
        lacks = 0 if has_room else self.rank + 1
        if bound > LARGE:
            most = array("q", [lacks])
            self.comm.Allreduce(self.mpi.IN_PLACE, [most, self.mpi.INT64_T], self.mpi.MAX)
            lacks = most[0]
        if lacks:
            raise MemoryError(f"rank {lacks - 1} has no memory for a transfer of {bound} bytes")

    def move(self, source: Places, target: Places, longest: int) -> None:
        """Sends the bytes at each address of `source` to its rank, and receives into the addresses of
        `target`.

        Nothing is copied on the way: MPI gets the addresses. The caller keeps the memory until the call
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
        """Like `move`, for adjacent parts whose lengths both ends know."""
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
        # mpi4py 4 renamed it.
        memory = getattr(self.mpi, "buffer", None) or self.mpi.memory
        return memory.fromaddress(address, length) if length else bytearray()

    def _at(self, places: Places, begin: int, chunk: int) -> list[Any]:
        """A datatype for each part: up to `chunk` of its bytes from `begin` on, at their address."""
        kinds = []
        for address, length in zip(*places, strict=True):
            count = min(chunk, max(0, length - begin))
            kind = self.mpi.BYTE.Create_hindexed([count], [address + begin if count else 0])
            kinds.append(kind.Commit())
        return kinds

    def exscan(self, values: bytes) -> bytearray:
        """Sums each 64-bit integer of `values` over the lower ranks; zeros on rank 0."""
        sums = bytearray(len(values))
        self.comm.Exscan([values, self.mpi.UINT64_T], [sums, self.mpi.UINT64_T], self.mpi.SUM)
        return sums if self.rank > 0 else bytearray(len(values))

    def allreduce(self, reduce: str, values: bytes) -> bytearray:
        """The sum or maximum of each 64-bit integer over all ranks."""
        joined = bytearray(len(values))
        op = self.mpi.MAX if reduce == "max" else self.mpi.SUM
        self.comm.Allreduce([values, self.mpi.UINT64_T], [joined, self.mpi.UINT64_T], op)
        return joined

    def _all(self, good: bool) -> bool:
        """Whether `good` holds on all ranks."""
        bad = array("q", [0 if good else 1])
        self.comm.Allreduce(self.mpi.IN_PLACE, [bad, self.mpi.INT64_T], self.mpi.MAX)
        return not bad[0]

    def host(self) -> str:
        """The name of this rank's host."""
        return self.mpi.Get_processor_name()

    def _opened(
        self, path: str, amode: int, hints: Sequence[tuple[str, str]]
    ) -> tuple[Any, BaseException | None, bool]:
        """A file, or why it could not be opened, and whether all ranks have opened it."""
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

        If a rank fails, the others get an unusable file; they learn of the failure in the agreement that
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
    """A file that all ranks have open. `close` is collective, so nothing closes it implicitly.

    A view changes the meaning of every offset of its handle, for all threads, until it is reset; so only a
    second handle, `viewed`, has views. Collective calls with several parts use it, and the first of them
    opens it. Thus one thread can read and write at offsets while another is in such a call, without waiting
    for another rank.
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
        """Surrounds each call: `close` waits for those that have begun, and later ones raise."""
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
        """Writes the bytes at an address; `place` has the address and their number."""
        with self._using():
            self.file.Write_at(offset, [self.communicator.memory(*place), place[1], self.mpi.BYTE])

    def read_at(self, place: tuple[int, int], offset: int) -> int:
        """Reads to an address, and returns the number of bytes read."""
        status = self.mpi.Status()
        with self._using():
            self.file.Read_at(offset, [self.communicator.memory(*place), place[1], self.mpi.BYTE], status)
        return status.Get_count(self.mpi.BYTE)

    def write_part(self, offset: int, data: bytes) -> None:
        """Collective: at most one part for each rank."""
        with self._using():
            self.file.Write_at_all(offset, [data, len(data), self.mpi.BYTE])

    def read_part(self, offset: int, length: int) -> bytearray:
        """Collective: at most one part for each rank."""
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
        """Collective: writes the parts of `data` at ascending offsets, through a view."""
        self._view(offsets, lengths, lambda file, count: file.Write_all([data, count, self.mpi.BYTE]))

    def read_parts(self, offsets: list[int], lengths: list[int]) -> bytearray:
        """Collective: reads the parts at ascending offsets, joined, through a view."""
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

        An earlier failure on this rank is raised only after `move`: the others wait for this rank in it, so
        this rank takes part with no bytes.
        """
        byte = self.mpi.BYTE
        # MPI rejects a view of an empty type, so a rank without parts moves nothing through a plain view.
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
        """Makes all collective calls, even if some fail; returns the first failure."""
        first = None
        for call in calls:
            try:
                call()
            except (self.mpi.Exception, MemoryError) as error:
                first = first or error
        return first

    def sync(self) -> None:
        # The first sync hands over this rank's writes; when all have done so, the second gets the writes of
        # others.
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
    """The operating system's number for an error of MPI; None if the error is not MPI's."""
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
    # ROMIO has one class for all other system errors, and names the error in its text.
    said = error.Get_error_string()
    told = (number for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) if os.strerror(number) in said)
    return next(told, errno.EIO)


def absolute(path: str) -> str:
    """`path` in the form for MPI, which would take text before a first colon as the name of a file system."""
    return os.path.abspath(path)
