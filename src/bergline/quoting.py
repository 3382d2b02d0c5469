"""Names and text in quotes, as SQL writes them: the one place that knows how quotes are escaped."""

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def back_quoted(name: str) -> str:
    """One part of a name in back-quotes, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def back_quoted_path(parts: Iterable[str]) -> str:
    """A name of several parts, such as a field inside a struct, each in back-quotes."""
    return ".".join(back_quoted(part) for part in parts)


def without_back_quotes(text: str) -> str:
    """The name that stands between back-quotes."""
    return text[1:-1].replace("``", "`")


def quoted_name(part: str, quote: str = "`") -> str:
    """One part of a name, in quotes if it needs them: back-quotes, or those of another engine."""
    return part if _PLAIN.fullmatch(part) else quote + part.replace(quote, quote * 2) + quote


def dotted(parts: Iterable[str]) -> str:
    """A name of several parts, each in back-quotes if it needs them."""
    return ".".join(quoted_name(part) for part in parts)


def quoted_text(text: str) -> str:
    """Text in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
