"""What a request is refused with."""


class RefusalError(Exception):
    """A request that cannot be answered: the status, what was wrong, and what to do.

    Example:
        >>> RefusalError(404, "there is no document 'x'").status
        404
    """

    def __init__(self, status: int, error: str, hint: str = "", retry: int | None = None) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint
        self.retry = retry  # seconds after which it may go better
