"""The search page and its JSON API, over an index that others may go on writing to."""

from parabit.web.app import create_app
from parabit.web.settings import Settings

__all__ = ["Settings", "create_app"]
