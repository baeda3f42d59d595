"""The figures of reading the boxes that a query finds."""

from __future__ import annotations

import hits
from hits import HDF5, PATTERNS, TAGS
from steps import OURS, Figure, Row, Target

HITS = (
    Figure(
        "hits",
        "Read the boxes that a query finds, compared with reading all",
        "4 GiB of doubles in five variables at two steps, written in chunks of 2 MiB, some of them tagged. "
        "Cold: a fresh process and an empty page cache. Reading all reads every variable at every step, "
        "whole.",
        (OURS,),
        hits.hits,
        (
            Row("all", "read all, s", 1, 2),
            Row("rate", "read all, MiB/s", 2**20),
            *(Row(f"hits_{t}", f"{t} ({share:g} %): hits") for t, share in TAGS.items()),
            *(Row(f"query_{t}", f"{t}: query, ms", 1e-3, 2) for t in TAGS),
            *(Row(f"read_{t}", f"{t}: read the boxes, s", 1, 3) for t in TAGS),
            *(Row(f"part_{t}", f"{t}: query and read, % of reading all", 0.01, 2) for t in TAGS),
            *(Row(f"query_share_{t}", f"{t}: query, % of reading all", 0.01, 3) for t in TAGS),
            *(Row(f"got_{t}", f"{t}: bytes read, MiB", 2**20, 1, counted=True) for t in TAGS),
            *(Row(f"over_{t}", f"{t}: bytes read over bytes of the boxes", 1, 3, counted=True) for t in TAGS),
            Row("data", "write the data, durable, s", 1, 1),
            Row("tags", "write the attributes, durable, ms", 1e-3, 1),
            Row("attributes", "attributes"),
            Row("write_share", "attributes, % of writing the data", 0.01, 3),
        ),
        (
            Target("reads at most 2 times the bytes of the boxes + 1 MiB (bytes beyond)", "beyond", 2**20),
            Target("writing attributes at most 0.09 % of writing data", "write_share", 0.0009),
            Target("a query at most 0.4 % of reading all (the frequent tag)", "query_share_frequent", 0.004),
        ),
        setup=hits.fill,
        count=hits.hits_counts,
        group="hits",
    ),
    Figure(
        "patterns",
        "Six ways to read, compared with HDF5",
        "The read patterns of Lofstead and others (Six degrees of scientific data, 2011) on the same data; "
        "HDF5 through h5py, a file per step, the same chunks, no compression. Cold, open included.",
        (OURS, HDF5),
        hits.patterns,
        (
            *(Row(p, f"{text}, ms", 1e-3, 1) for p, text in PATTERNS.items()),
            *(
                Row(f"over_{p}", f"{p}: bytes read over bytes of the box", 1, 2, counted=True)
                for p in PATTERNS
            ),
        ),
        tuple(Target(f"{p} no slower than HDF5", p, 1.0, HDF5) for p in PATTERNS),
        setup=hits.fill,
        count=hits.patterns_counts,
        group="hits",
    ),
)
