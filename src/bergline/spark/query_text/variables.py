"""`${name}` in a text: the values that Spark puts in place of variables before it reads a statement."""

import re
from collections.abc import Callable

ValueOf = Callable[[str, str], str | None]
"""The value of a variable by the prefix before its colon, which may be empty, and its name.

None for one that stays in the text; LookupError if Spark refuses a text that has it.
"""
_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}", re.ASCII)


def with_values(text: str, value_of: ValueOf) -> str:
    """The text with values in place of variables, whose own variables have theirs too; unknown ones stay.

    The text stays as it is where Spark refuses it, as for a variable that needs itself, and where the values would
    make up another variable: then it is not the same text for whoever reads it next.
    """
    try:
        once = _with_values(text, value_of, ())
        return once if _with_values(once, value_of, ()) == once else text
    except LookupError:
        return text


def _with_values(text: str, value_of: ValueOf, within: tuple[tuple[str, str], ...]) -> str:
    def value(found: re.Match[str]) -> str:
        variable = found[1] or "", found[2]
        if variable in within:
            raise LookupError(f"variable {found[0]} needs itself")
        known = value_of(*variable)
        return found[0] if known is None else _with_values(known, value_of, (*within, variable))

    return _VARIABLE.sub(value, text)
