"""Text for a terminal: names and values cannot move its cursor, change colors or the direction of writing."""


def visible(text: str, keep: str = "") -> str:
    """The text with non-printable characters, except those to `keep`, as Python escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
