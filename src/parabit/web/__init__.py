"""The search page and its JSON API, for an index that others may keep writing to."""

from parabit.web.app import create_app
from parabit.web.service import Settings

__all__ = ["Settings", "create_app"]
