"""Sizes of files as people read them."""

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_KIB = 1024


def render_size(size: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1, with three digits: `512 B`, `1.50 MiB`."""
    if size < _KIB:
        return f"{size} B"
    value, place = size / _KIB, 0
    while round(value) >= _KIB and place < len(_UNITS) - 1:
        value, place = value / _KIB, place + 1
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0  # noqa: PLR2004  (three digits, rounded)
    return f"{value:.{digits}f} {_UNITS[place]}"
