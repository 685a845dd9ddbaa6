"""What the server tells Prometheus of itself."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts of one server.

    Example:
        >>> metrics = Metrics()
        >>> metrics.answered("/api/search", 200, 0.004)
        >>> b'parabit_requests_total{route="/api/search",status="200"} 1.0' in metrics.text(documents=3, waiting=0)
        True
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter("parabit_requests", "Requests answered", ["route", "status"], registry=registry)
        self._seconds = Histogram(
            "parabit_request_seconds", "Time to answer", ["route"], buckets=_SECONDS, registry=registry
        )
        self._documents = Gauge("parabit_documents", "Documents in the index", registry=registry)
        self._waiting = Gauge("parabit_waiting", "Questions that wait for the index", registry=registry)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request; the route is one of the server's own, not what somebody asked for."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self, documents: int, waiting: int) -> bytes:
        """All of it, as Prometheus reads it."""
        self._documents.set(documents)
        self._waiting.set(waiting)
        return generate_latest(self._registry)
