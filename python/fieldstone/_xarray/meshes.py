"""What jobs declared of variables on unstructured meshes: names of dimensions, UGRID's attributes.

A store without the folder of meshes has none, and its catalog is not asked. Where the runs of a request say
different things of a variable, nothing of it is taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

FOLDER = "meshes"

Said = tuple[tuple[str, ...], dict[str, Any]]
"""Names of dimensions, an empty one where it has none, and attributes."""


def declared(store: Any, runs: Iterable[tuple[str | None, str]]) -> dict[str, Said]:
    """By variable what these runs (project and name) declared of it, where it stands on a mesh."""
    url = str(getattr(store, "url", "")).removeprefix("file://").removeprefix("file:")
    if not url or not os.path.isdir(os.path.join(url, FOLDER)):
        return {}
    found: dict[str, Said] = {}
    differing = set()
    for project, run in runs:
        terms = {"run": run} if project is None else {"run": run, "project": project}
        for row in store.variables(**terms):
            attrs = dict(row.attrs or {})
            if row.dims is None or not {"mesh", "location"} <= set(attrs):
                continue
            said = (tuple(row.dims), attrs)
            if found.setdefault(row.name, said) != said:
                differing.add(row.name)
    return {name: said for name, said in found.items() if name not in differing}
