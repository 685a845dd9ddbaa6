"""Numbers as people read them."""

_SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def size(count: float) -> str:
    """Bytes.

    Example:
        >>> size(0), size(213e6), size(16e9), size(1.5e15)
        ('0', '213 MB', '16.0 GB', '1.5 PB')
    """
    if count < 1:
        return "0"
    unit, name = next(((unit, name) for unit, name in _SIZES if count >= unit), (1.0, "bytes"))
    value = count / unit
    return f"{value:,.0f} {name}" if value >= 100 else f"{value:.1f} {name}"


def duration(hours: float) -> str:
    """Hours, or what is easier to grasp.

    Example:
        >>> duration(1e-9), duration(0.0001), duration(0.02), duration(1.25), duration(80), duration(30_000)
        ('0 s', '0.36 s', '1.2 min', '1.2 h', '80 h', '3.4 years')
    """
    if hours * 3600 < 60:
        return f"{hours * 3600:.2g} s" if hours * 3600 >= 0.001 else "0 s"
    if hours < 1:
        return f"{hours * 60:.1f} min"
    if hours < 10:
        return f"{hours:.1f} h"
    return f"{hours:,.0f} h" if hours < 24 * 365 else f"{hours / 24 / 365:,.1f} years"


def count(number: float) -> str:
    """A number of things.

    Example:
        >>> count(5000), count(10_000_000), count(1_250_000_000)
        ('5,000', '10.0 million', '1.25 billion')
    """
    if number >= 1e9:
        return f"{number / 1e9:,.2f} billion"
    return f"{number / 1e6:,.1f} million" if number >= 1e6 else f"{number:,.0f}"
