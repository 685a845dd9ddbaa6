"""Ways to search codes, all with the same contract; see `base.Backend`."""

from parabit.index.backends.base import Arrays, Backend
from parabit.index.backends.choosing import choose, choose_built
from parabit.index.backends.flat import Flat
from parabit.index.backends.multi import Multi
from parabit.index.backends.tables import Tables

BACKENDS: dict[str, type[Backend]] = {backend.name: backend for backend in (Flat, Tables, Multi)}

__all__ = ["BACKENDS", "Arrays", "Backend", "Flat", "Multi", "Tables", "choose", "choose_built"]
