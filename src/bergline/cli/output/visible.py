"""Text for a terminal: names and values cannot move its cursor, change its colors or turn the direction of writing."""


def visible(text: str, keep: str = "") -> str:
    """The text with every character that is not printable, but those to `keep`, as its escape in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
