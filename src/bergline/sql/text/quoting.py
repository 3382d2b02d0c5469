"""Names and text as SQL writes them."""

import re

from bergline.sql.statements.statements import Name

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted_name(part: str) -> str:
    """One part of a name, in back-quotes if it needs them."""
    return part if _PLAIN.fullmatch(part) else "`" + part.replace("`", "``") + "`"


def dotted(name: Name) -> str:
    """A name of several parts, each in back-quotes if it needs them."""
    return ".".join(quoted_name(part) for part in name)


def quoted_text(text: str) -> str:
    """Text in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
