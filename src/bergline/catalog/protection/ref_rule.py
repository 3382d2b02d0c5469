"""A rule that protects refs: which ones by name, who may move them and how, and the text that a table keeps of it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bergline.arguments import check_list, check_text, check_whole, shown
from bergline.catalog.protection.caller import GROUP
from bergline.errors import InvalidInputError, near_names
from bergline.format.metadata.refs import SnapshotRefType, check_ref_name

_SEPARATOR, _COMMA, _ANY = ";", ",", "*"
_MAX_APPROVALS: Final = 100


class RefRule(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the refs whose names match a pattern; a rule with more than writers also forbids dropping them.

    A ref that could be dropped could be created again elsewhere, so every restriction of moves is one of drops too.
    """

    pattern: str
    """A name in which `*` stands for any text: `main`, `release/*`, `v*`."""
    kind: SnapshotRefType | None = None
    """Only for branches or only for tags; None for both."""
    writers: tuple[str, ...] | None = None
    """Who may change the ref at all, by name or as `group:ops`; None for everybody."""
    only_publish: bool = False
    """A branch moves only forward, to what was on another branch before: by publishing, merging, cherry-picking."""
    fast_forward_only: bool = False
    """The head before stays in the history of the head after."""
    no_drop: bool = False
    no_move: bool = False
    """The head stays where it is."""
    no_rollback: bool = False
    """No snapshot of the history is left behind, unless all of it is replaced."""
    no_expiry: bool = False
    """No snapshot in the history of a branch is removed."""
    checks: tuple[str, ...] = ()
    """Names of checks that must have passed on the very snapshot that becomes the head."""
    approvals: int = 0
    """How many others must have approved that snapshot."""
    bypass: tuple[str, ...] = ()
    """Who is not bound by the rule, and alone may change it."""

    def __post_init__(self) -> None:
        check_ref_name(self.pattern)
        for field, name in _NAMES.items():
            check_names(getattr(self, field) or (), name)
        for field in _FLAGS:
            if type(getattr(self, field)) is not bool:
                raise InvalidInputError(f"expected true or false for `{field}`, found {shown(getattr(self, field))}")
        if not 0 <= check_whole(self.approvals, "`approvals`") <= _MAX_APPROVALS:
            raise InvalidInputError(f"expected 0 to {_MAX_APPROVALS} for `approvals`, found {self.approvals}")
        self._check_consistent()

    @property
    def is_firm(self) -> bool:
        """Whether the rule restricts more than who writes, so that the ref cannot be dropped."""
        return bool(self.checks or self.approvals) or any(getattr(self, field) for field in _FLAGS)

    @property
    def about_moves(self) -> tuple[str, ...]:
        """The fields of the rule that say how the head may move."""
        return tuple(field for field in _OF_MOVES if getattr(self, field))

    def applies_to(self, ref: str, *, is_branch: bool) -> bool:
        """Whether a ref is protected by this rule."""
        kind = SnapshotRefType.BRANCH if is_branch else SnapshotRefType.TAG
        return self.kind in {None, kind} and matches(self.pattern, ref)

    def _check_consistent(self) -> None:
        if self.writers is None and not self.is_firm:
            hints = [f"such as {', '.join(f'`{field}=True`' for field in _FLAGS[:2])} or `writers=[…]`"]
            raise InvalidInputError(f"expected a restriction in the rule `{self.pattern}`, found none", hints=hints)
        if self.writers == ():
            hints = ["`no_move=True` keeps a ref where it is"]
            raise InvalidInputError(f"expected a writer in the rule `{self.pattern}`, found an empty list", hints=hints)
        if self.no_move and self.about_moves:
            raise InvalidInputError(
                f"expected either `no_move` or `{self.about_moves[0]}` in the rule `{self.pattern}`, found both: "
                "the one forbids what the other allows"
            )
        if self.kind is SnapshotRefType.TAG and self.only_publish:
            raise InvalidInputError(
                f"expected `only_publish` for branches, found it in the rule `{self.pattern}` for tags"
            )


def make_rule(pattern: str, **given: Any) -> RefRule:
    """A rule from a caller's arguments: lists of names, and the kind as text."""
    fields = dict(given)
    for field in _NAMES:
        if fields.get(field) is not None:
            fields[field] = check_list(fields[field], "name")
    if fields.get("kind") is not None:
        fields["kind"] = _parse_kind(fields["kind"])
    return RefRule(pattern=pattern, **fields)


def parse_rule(pattern: str, text: str) -> RefRule:
    """A rule from its text, such as `only-publish; writers=etl,ci; approvals=2`."""
    fields: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(_SEPARATOR))):
        name, sign, value = (piece.strip() for piece in part.partition("="))
        field = name.replace("-", "_")
        if name != field.replace("_", "-") or field not in _PARSERS:
            known = [known.replace("_", "-") for known in _PARSERS]
            hints = [f"did you mean {', '.join(f'`{near}`' for near in near_names(name, known))}?"]
            raise InvalidInputError(
                f"expected {', '.join(f'`{one}`' for one in known)} in a rule, found {shown(name)}",
                hints=hints if near_names(name, known) else [],
            )
        if field in fields:
            raise InvalidInputError(f"expected `{name}` once in a rule, found it twice")
        if bool(sign) is (field in _FLAGS):
            expected = f"`{name}` alone" if field in _FLAGS else f"`{name}=…`"
            raise InvalidInputError(f"expected {expected} in a rule, found {shown(part)}")
        fields[field] = _PARSERS[field](value)
    return RefRule(pattern=pattern, **fields)


def render_rule(rule: RefRule) -> str:
    """The text of a rule, without its pattern."""
    parts = [] if rule.kind is None else [f"kind={rule.kind}"]
    parts += [field.replace("_", "-") for field in _FLAGS if getattr(rule, field)]
    parts += [f"{field}={_COMMA.join(getattr(rule, field))}" for field in _NAMES if getattr(rule, field)]
    parts += [f"approvals={rule.approvals}"] if rule.approvals else []
    return f"{_SEPARATOR} ".join(parts)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is what a pattern says, in which `*` stands for any text."""
    first, *others = pattern.split(_ANY)
    if not others:
        return pattern == name
    *middle, last = others
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    place, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True


def overlap(pattern: str, other: str) -> bool:
    """Whether some name matches both patterns."""
    reached = {0}  # places in `other` that can be reached with the pattern so far
    reached = _with_any(reached, other)
    for letter in pattern:
        if letter == _ANY:
            reached = set(range(min(reached, default=len(other) + 1), len(other) + 1))
        else:
            stepped = {place + 1 for place in reached if place < len(other) and other[place] == letter != _ANY}
            reached = stepped | {place for place in reached if place < len(other) and other[place] == _ANY}
        reached = _with_any(reached, other)
    return len(other) in reached


def _with_any(places: set[int], other: str) -> set[int]:
    """The places, and those behind a `*` that stands for no text."""
    found = set(places)
    for place in sorted(places):
        following = place
        while following < len(other) and other[following] == _ANY:
            following += 1
            found.add(following)
    return found


def check_names(names: Any, what: str) -> None:
    """InvalidInputError for names of checks or principals that a rule cannot have."""
    if not isinstance(names, tuple):
        raise InvalidInputError(f"expected a list of {what}s in a rule, found {shown(names)}")
    for name in names:
        text = check_text(name, f"text for a {what}")
        if not text or text == GROUP or text != text.strip() or _COMMA in text or _SEPARATOR in text:
            raise InvalidInputError(f"expected a {what} without `,`, `;` and spaces around it, found {shown(name)}")
    if len(set(names)) != len(names):
        raise InvalidInputError(f"expected each {what} once in a rule, found {shown(names)}")


def _parse_kind(text: Any) -> SnapshotRefType:
    if text not in list(SnapshotRefType):
        raise InvalidInputError(f"expected `branch` or `tag` as the kind of refs, found {shown(text)}")
    return SnapshotRefType(text)


def _parse_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(_COMMA)) if text else ()


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MAX_APPROVALS))):
        raise InvalidInputError(f"expected a number from 0 to {_MAX_APPROVALS} of approvals, found {shown(text)}")
    return int(text)


_FLAGS: Final = ("only_publish", "fast_forward_only", "no_drop", "no_move", "no_rollback", "no_expiry")
_OF_MOVES: Final = ("only_publish", "fast_forward_only", "checks", "approvals")
_NAMES: Final[Mapping[str, str]] = {"writers": "writer", "checks": "check", "bypass": "name of who may bypass"}
_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "kind": _parse_kind,
    **dict.fromkeys(_FLAGS, lambda _: True),
    **dict.fromkeys(_NAMES, _parse_names),
    "approvals": _parse_number,
}
