"""Containers: self-describing array files (netCDF classic, or with a partitioned header).

One process or all ranks of an MPI job create one file; each rank defines its objects, and `enddef` merges the
definitions::

    from fieldstone import container

    with container.create("run.nc") as f:
        f.def_dim("time", None)
        f.def_dim("x", 100)
        t = f.def_var("t", "f4", ("time", "x"), attrs={"units": "K"})
        f.enddef()
        t[0] = 280.0

    with container.open("run.nc") as f:
        f["t"].attrs["units"], f["t"][0, :10]

Names are paths: ``event_7/hits`` is the object ``hits`` in the path ``event_7``, in every format.
"""

from ._attributes import Attributes
from ._dataset import write_dataset
from ._file import Container, create, open
from ._names import Dimensions, Variables
from ._report import EnddefReport, Phase
from ._variable import Variable

__all__ = [
    "Attributes",
    "Container",
    "Dimensions",
    "EnddefReport",
    "Phase",
    "Variable",
    "Variables",
    "create",
    "open",
    "write_dataset",
]
