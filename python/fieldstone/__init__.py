"""Fieldstone: one store for a simulation's fields, their metadata and their provenance."""

from ._native import __version__

__all__ = ["__version__"]
