"""Variables whose data are outside the store, in files that their run declares."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import Corrupt, Error, Invalid, NotFound

if TYPE_CHECKING:  # imported where it is used
    import numpy as np

    from ._store import Store

_Box = tuple[tuple[int, ...], tuple[int, ...]]


# The code for a file that differs from the run's declaration.
CHANGED = "outside-changed"


def declare(outside: Any) -> Any:
    """The argument of ``create_run(outside=…)`` in the form in which it is kept: paths as text, the root
    absolute."""
    if outside is None:
        return None
    if not isinstance(outside, Mapping):
        raise Invalid(
            f"outside is {type(outside).__name__}", "give a dict with at least template= and format="
        )
    kept = {
        key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in outside.items()
    }
    if not isinstance(kept.get("root", ""), str):
        raise Invalid(f"outside: root is {kept['root']!r}", "give the path of a folder")
    kept["root"] = os.path.abspath(kept.get("root") or ".")
    if kept.get("dtype") is not None:
        import numpy as np

        kept["dtype"] = np.dtype(kept["dtype"]).str
    chunks = kept.get("chunks")
    if isinstance(chunks, Mapping):
        kept["chunks"] = {name: _extents(extents) for name, extents in chunks.items()}
    elif chunks is not None:
        kept["chunks"] = _extents(chunks)
    return kept


def _extents(extents: Any) -> Any:
    if isinstance(extents, str) or not hasattr(extents, "__iter__"):
        return extents
    return [int(n) for n in extents]


def read(
    store: Store,
    run: tuple[str | None, str],
    variable: str,
    version: int | None,
    step: int | None,
    start: Any,
    count: Any,
    txn: str | None,
    missing: Error,
) -> np.ndarray:
    """A box of a variable from the files that its run declares; raises `missing` if it declares none."""
    found = store._catalog().outside(run, variable, version, step, start, count, txn)
    if found is None:
        raise missing
    if not isinstance(found, tuple):
        return found
    import numpy as np

    form, dtype, (begin, extents), reads = found
    out = np.empty(extents, dtype)
    for path, dataset, lead, piece, part in reads:
        place = tuple(slice(a - b, a - b + n) for a, b, n in zip(part[0], begin, part[1], strict=True))
        inside = tuple(slice(a - b, a - b + n) for a, b, n in zip(part[0], piece[0], part[1], strict=True))
        out[place] = (_netcdf if form == "netcdf" else _hdf5)(path, dataset, lead, piece, inside, dtype)
    return out


def _holds(path: str, piece: _Box) -> str:
    ranges = ",".join(f"{a}:{a + n}" for a, n in zip(*piece, strict=True))
    return f"{path}, which should hold box {ranges or '()'}"


def _open(path: str, piece: _Box, how: Any) -> Any:
    if not os.path.exists(path):
        raise NotFound(
            f"there is no file {_holds(path, piece)}",
            "check template and root of the run's outside",
            "file-not-found",
        )
    from ._helper.files import open_plain

    try:
        # netCDF-C and HDF5 wait for the other end of a pipe.
        open_plain(path).close()
        return how()
    except PermissionError:
        raise
    except (OSError, RuntimeError) as error:
        unreadable = f"the file {_holds(path, piece)}, cannot be read: {error}"
        raise Corrupt(unreadable, code=CHANGED) from error


def _checked(variable: Any, path: str, name: str, lead: int | None, piece: _Box, dtype: np.dtype) -> None:
    """Refuses a variable that does not have the declared shape and dtype."""
    import numpy as np

    shape, extents = tuple(variable.shape), tuple(piece[1])
    hint = "the file differs from the declaration; check chunks and dtype of the run's outside"
    own, rest = (shape, shape) if lead is None else (shape[:1], shape[1:])
    if rest != extents:
        raise Corrupt(
            f"the file {_holds(path, piece)}, has {name} of shape {rest} instead of {extents}",
            hint,
            CHANGED,
        )
    if lead is not None and lead >= own[0]:
        raise NotFound(f"the file {_holds(path, piece)}, has {own[0]} steps, not step {lead}")
    there = np.dtype(variable.dtype)
    if there.newbyteorder("=") != dtype.newbyteorder("="):
        raise Corrupt(
            f"the file {_holds(path, piece)}, has {name} of {there} instead of {dtype}", hint, CHANGED
        )


def _netcdf(
    path: str, name: str, lead: int | None, piece: _Box, inside: tuple[slice, ...], dtype: np.dtype
) -> Any:
    """A part of a netCDF variable as stored: not masked or scaled."""
    import netCDF4

    with _open(path, piece, lambda: netCDF4.Dataset(path)) as dataset:
        dataset.set_auto_maskandscale(False)
        try:
            variable = dataset[name]
        except (IndexError, KeyError):
            none = f"the file {_holds(path, piece)}, has no variable {name}"
            raise Corrupt(none, code=CHANGED) from None
        _checked(variable, path, name, lead, piece, dtype)
        place = inside if lead is None else (slice(lead, lead + 1), *inside)
        if dataset.data_model.startswith("NETCDF3") and _cut(path, name, place):
            cut = f"the file {_holds(path, piece)}, ends before the elements of {name}"
            raise Corrupt(cut, code=CHANGED)
        return variable[inside if lead is None else (lead, *inside)]


def _cut(path: str, name: str, place: tuple[slice, ...]) -> bool:
    """Whether a classic file ends before elements that its header promises; netCDF-C then returns zeros."""
    from ._helper.classic import HeaderError, Layout
    from ._helper.files import open_plain

    with open_plain(path) as file:
        try:
            layout = Layout(file, os.path.getsize(path))
        except HeaderError:
            return True
    first = place[0] if place else slice(0, 1)
    return layout.missing(name, first.start, first.stop - first.start)


def _hdf5(
    path: str, name: str, lead: int | None, piece: _Box, inside: tuple[slice, ...], dtype: np.dtype
) -> Any:
    """A part of an HDF5 dataset."""
    try:
        import h5py
    except ImportError as error:
        raise Invalid(
            f"the file {_holds(path, piece)}, is HDF5, which needs h5py", "pip install 'fieldstone[hdf5]'"
        ) from error
    with _open(path, piece, lambda: h5py.File(path, "r")) as file:
        variable = file.get(name)
        if not isinstance(variable, h5py.Dataset):
            raise Corrupt(f"the file {_holds(path, piece)}, has no dataset {name}", code=CHANGED)
        _checked(variable, path, name, lead, piece, dtype)
        return variable[inside if lead is None else (lead, *inside)]


class Object(NamedTuple):
    """A file outside the store that holds a piece of a variable."""

    path: str
    """Its path."""
    dataset: str
    """The variable in it; a raw file has no such name."""
    start: tuple[int, ...]
    """First element of the piece in the variable."""
    count: tuple[int, ...]
    """Extents of the piece."""
    part: tuple[slice, ...]
    """The part of the requested box that it holds: slices of an array of the box."""


def objects(
    store: Store,
    run: tuple[str | None, str],
    variable: str,
    version: int | None,
    step: int | None,
    start: Any,
    count: Any,
    txn: str | None,
) -> list[Object]:
    """The objects that hold a box of a variable, in C order."""
    found = store._catalog().objects(run, variable, version, step, start, count, txn)
    if found is None:
        raise Invalid(
            f"run {run[1]} does not say that its data lie outside", "declare it: create_run(name, outside=…)"
        )
    parts = [part for *_, part in found]
    first = [min(ends) for ends in zip(*(begin for begin, _ in parts), strict=True)]
    slices = [
        tuple(slice(a - o, a - o + n) for a, n, o in zip(begin, extent, first, strict=True))
        for begin, extent in parts
    ]
    return [
        Object(path, dataset, *piece, part)
        for (path, dataset, piece, _), part in zip(found, slices, strict=True)
    ]
