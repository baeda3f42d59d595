"""The parts of FDB's configuration that name a store: one root, which is the store's folder, and a schema.

Example::

    named = Configuration.of({"schema": "schema", "spaces": [{"roots": [{"path": "root"}]}]})
    named.url, named.schema     # "root", "schema"
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fieldstone.pyfdb._types import user_error

Given = str | Path | Mapping[str, Any] | None


@dataclass(frozen=True)
class Configuration:
    """The contents of a configuration."""

    url: str
    schema: str | None = None
    writable: bool = True
    visitable: bool = True
    system: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Given) -> Configuration:
        """Reads FDB's configuration: a mapping, its text, or a file with it; or a store's path or URL."""
        parsed = read(given) if given is not None else from_environment()
        if isinstance(parsed, str):
            return cls(parsed, system={"url": parsed})
        return cls(
            _root(parsed),
            parsed.get("schema"),
            bool(parsed.get("writable", True)),
            bool(parsed.get("visitable", True)),
            dict(parsed),
        )


def read(given: Given) -> dict[str, Any] | str:
    """A mapping, or text if a store's path or URL is given."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Path):
        return str(given) if given.is_dir() else _yaml(given.read_text(), str(given))
    if isinstance(given, str):
        return _yaml(given, "the configuration")
    raise ValueError(f"Config: Unknown config type, must be str, dict or Path, not {type(given).__name__}")


def from_environment() -> dict[str, Any] | str:
    """The configuration that FDB's environment variables name."""
    if text := os.environ.get("FDB5_CONFIG"):
        return read(text)
    path = os.environ.get("FDB5_CONFIG_FILE")
    if path is None and (home := os.environ.get("FDB_HOME")):
        path = os.path.join(home, "etc", "fdb", "config.yaml")
    if path is None:
        raise user_error(
            "no configuration is given",
            "give FDB(config), or set FDB5_CONFIG_FILE, FDB5_CONFIG or FDB_HOME",
        )
    return read(Path(path))


def _yaml(text: str, what: str) -> dict[str, Any] | str:
    try:
        import yaml
    except ImportError:
        raise user_error(
            "a configuration in text needs PyYAML", "pip install 'fieldstone[pyfdb]', or give a dict"
        ) from None
    try:
        parsed = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise user_error(f"{what} is not YAML: {error}") from error
    if isinstance(parsed, str):
        return parsed
    if not isinstance(parsed, dict):
        raise user_error(f"{what} is not a mapping in YAML", "give FDB's configuration, or a store's path")
    return parsed


def _root(parsed: Mapping[str, Any]) -> str:
    kind = parsed.get("type", "local")
    if kind != "local":
        raise user_error(
            f"a configuration of type {kind!r} does not name a folder",
            "give one of type local, or a store's URL",
        )
    spaces = parsed.get("spaces") or [{}]
    roots = [root for space in spaces for root in space.get("roots") or []]
    paths = [root["path"] if isinstance(root, Mapping) else root for root in roots]
    if len(paths) != 1:
        raise user_error(
            f"the configuration has {len(paths)} roots, but a store is one folder", "name one root in spaces"
        )
    if any(file.is_file() for file in Path(paths[0]).glob("*/toc")):
        raise user_error(
            f"{paths[0]} holds an FDB's own files",
            "copy its fields with fieldstone ingest STORE fdb:CONFIG; name another folder for the store",
        )
    return str(paths[0])
