"""The helper process, which does everything that needs eccodes, netCDF-C, HDF5 or matplotlib.

The native program never links these libraries. It starts ``python -m fieldstone._helper`` and exchanges the
frames of ``spec/helper-protocol.md`` with it over a pipe, so that a C library that crashes on a damaged file
only ends this process.

Invariants:

* stdout carries only frames; output of the C libraries goes to stderr;
* a request is answered by any number of frames and then exactly one ``done`` or ``error``;
* memory is bounded by ``PIECE_BYTES`` and one GRIB message, whatever the size of a file.
"""

PROTOCOL = 1
"""Version of the pipe protocol."""

PIECE_BYTES = 32 << 20
"""Array data are read and sent in parts of at most this size."""
