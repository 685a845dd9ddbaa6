"""What a server allows, and to whom."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How a server is to behave.

    Example:
        >>> Settings(token="a secret").most_hits
        100
    """

    token: str | None = None  # what a request must show; None lets everybody in
    local: bool = True  # bound to the loopback: requests must be for it by name, so that no foreign page can ask
    most_hits: int = 100  # a search
    most_characters: int = 100_000  # a query
    most_bytes: int = 1 << 20  # a request
    most_waiting: int = 1000  # requests; more are told to come back
    seconds: float = 10.0  # that a request may take
    examples: Sequence[str] = ()  # questions that the page offers
    map: bool = True  # whether one is drawn
