"""pyfdb's names over a store: ``import fieldstone.pyfdb as pyfdb``.

For programs that were written for pyfdb (5.25): the class :class:`FDB`, its elements and its requests, on a
store instead of an FDB. The configuration is FDB's: its root is the store's folder, its schema the store's.
The path or URL of a store is also accepted.

``docs/guide/pyfdb.md`` lists the differences. A call without meaning here raises ``fieldstone.Invalid``;
every error of a call is also a ``RuntimeError``, like those of pyfdb.

Example::

    import fieldstone.pyfdb as pyfdb

    with pyfdb.FDB({"schema": "schema", "spaces": [{"roots": [{"path": "root"}]}]}) as fdb:
        fdb.archive(open("forecast.grib", "rb").read())
    fdb.retrieve({"class": "od", "param": ["129", "130"], "step": "0/to/24/by/6"}).readall()
"""

from fieldstone._native import __version__
from fieldstone.pyfdb._axes import IndexAxis
from fieldstone.pyfdb._elements import (
    ControlElement,
    DataHandle,
    ListElement,
    PurgeElement,
    StatsElement,
    StatusElement,
    WipeElement,
    WipeElementType,
)
from fieldstone.pyfdb._fdb import FDB
from fieldstone.pyfdb._types import URI, ControlAction, ControlIdentifier, MarsIdentifier, MarsSelection

__all__ = [
    "FDB",
    "URI",
    "ControlAction",
    "ControlElement",
    "ControlIdentifier",
    "DataHandle",
    "IndexAxis",
    "ListElement",
    "MarsIdentifier",
    "MarsSelection",
    "PurgeElement",
    "StatsElement",
    "StatusElement",
    "WipeElement",
    "WipeElementType",
    "__version__",
]
