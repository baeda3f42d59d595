"""The helper process: what needs eccodes, netCDF-C, HDF5 or matplotlib happens here.

The native program never links these libraries. It starts ``python -m fieldstone._helper`` and talks
to it over a pipe in the frames of ``spec/helper-protocol.md``, so that a C library that crashes on a
damaged file takes down this process alone.

Invariants:

* stdout carries frames and nothing else; what the C libraries print goes to stderr;
* a request is answered by any number of frames and then exactly one ``done`` or ``error``;
* memory is bounded by ``PIECE_BYTES`` and one GRIB message, whatever the size of a file.
"""

PROTOCOL = 1
"""Version of the pipe protocol."""

PIECE_BYTES = 32 << 20
"""Array data are read and sent in parts of at most this size."""
