"""Lines of CSV: NULL is empty, and empty text is quoted."""

from collections.abc import Iterable


def csv_line(values: Iterable[str | None]) -> str:
    """One line, without its end."""
    return ",".join(map(_csv_value, values))


def _csv_value(value: str | None) -> str:
    """Empty for NULL, quoted where necessary; empty text is quoted, to tell it from NULL."""
    if value is None:
        return ""
    quoted = not value or any(character in value for character in ',"\r\n')
    return '"' + value.replace('"', '""') + '"' if quoted else value
