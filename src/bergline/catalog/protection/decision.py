"""Decisions on the moves of a commit: allowed, or refused by a rule, with what to do instead."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from bergline.arguments import counted
from bergline.catalog.protection.caller import StandIn, is_among
from bergline.catalog.protection.ref_moves import MoveKind, RefMove
from bergline.catalog.protection.ref_rule import RefRule, matches
from bergline.catalog.protection.rule_scope import TABLE, RuleScope
from bergline.catalog.protection.table_rules import UnreadableRule

_HEAD_LEAVES: Final = frozenset({MoveKind.ROLLED_BACK, MoveKind.DIVERGED, MoveKind.REPLACED})
_HEAD_CHANGES: Final = _HEAD_LEAVES | {MoveKind.FORWARD}
_NEW_HEAD: Final = _HEAD_CHANGES | {MoveKind.CREATED}
_GONE: Final = frozenset({MoveKind.DROPPED, MoveKind.RENAMED})
_SHOWN: Final = 3


class HeadReview(msgspec.Struct, frozen=True):
    """What is on record about a snapshot: the checks that passed on it, and who approved it."""

    checks: frozenset[str] = frozenset()
    approved_by: frozenset[str] = frozenset()


class DecidedBy(msgspec.Struct, frozen=True):
    """Who asks, and what is on record; without a name, the server decides on what depends on it."""

    caller: str | None
    review: Callable[[int, str], HeadReview | None] = lambda *_: None
    """What is on record about a snapshot for a ref; None where no record is kept."""
    groups: frozenset[str] = frozenset()
    authors: Callable[[RefMove], frozenset[str]] = lambda _: frozenset()
    """Who wrote what a ref gains, as far as that is known: their own approvals do not count."""
    stand_in: StandIn | None = None
    is_up_to_date: Callable[[RefMove], bool] = lambda _: False
    """Whether what stands in for the new head has all that the ref had."""
    replays_truly: Callable[[RefMove], bool] = lambda _: True
    """Whether snapshots that say that they replay others have the same files; where it is not looked at, they do."""

    def is_among(self, names: tuple[str, ...]) -> bool:
        """Whether a list in a rule names the caller."""
        return self.caller is not None and is_among(names, self.caller, self.groups)


class Allowed(msgspec.Struct, frozen=True):
    """The moves are allowed, some of them only because the caller may bypass the rule."""

    bypassed: tuple["Refused", ...] = ()


class Refused(msgspec.Struct, frozen=True):
    """A rule forbids a move."""

    rule: str
    move: RefMove
    restriction: str
    """What the rule demands, to follow the name of the ref: "moves only forward"."""
    instead: str
    scope: RuleScope = TABLE

    def sentence(self, table: str, done: str | None = None) -> str:
        """Rule, ref and what was found; `done` says what happened to the table if it was not a commit."""
        kind = "branch" if self.move.is_branch else "tag"
        return (
            f"{kind} `{self.move.ref}` of table `{table}` is protected by the rule `{self.rule}`{self.scope.suffix}: "
            f"it {self.restriction}, found {done or describe_move(self.move)}"
        )


Decision = Allowed | Refused


def decide(
    rules: Iterable[RefRule | UnreadableRule], moves: Iterable[RefMove], by: DecidedBy, scope: RuleScope = TABLE
) -> Decision:
    """Every rule that applies to a ref must allow each of its moves; the first that does not is named."""
    bypassed: list[Refused] = []
    moves = tuple(moves)
    for rule in rules:
        for move in moves:
            refused = next(_refusals(rule, move, by, scope), None)
            if refused is None:
                continue
            if isinstance(rule, UnreadableRule) or not by.is_among(rule.bypass):
                return refused
            bypassed.append(refused)
    return Allowed(tuple(bypassed))


def refusals(
    rules: Iterable[RefRule | UnreadableRule], moves: Iterable[RefMove], by: DecidedBy, scope: RuleScope = TABLE
) -> Iterator[Refused]:
    """All objections of rules to moves; `decide` stops at the first."""
    moves = tuple(moves)
    for rule in rules:
        if isinstance(rule, UnreadableRule) or not by.is_among(rule.bypass):
            for move in moves:
                yield from _refusals(rule, move, by, scope)


def describe_move(move: RefMove) -> str:
    """A move in words, to follow "found"."""
    head = None if move.after is None else move.after.snapshot_id
    match move.kind:
        case MoveKind.CREATED:
            return f"it created at snapshot {head}"
        case MoveKind.FORWARD:
            return f"a commit that moves it to snapshot {head}"
        case MoveKind.ROLLED_BACK:
            return f"a rollback to snapshot {head}"
        case MoveKind.DIVERGED:
            left = None if move.before is None else move.before.snapshot_id
            if left == head:
                return "other snapshots under the ids of its history"
            return f"a move to snapshot {head}, which leaves snapshot {left} behind"
        case MoveKind.REPLACED:
            return f"a replacement by snapshot {head}, which has another history"
        case MoveKind.DROPPED if move.new_name is not None:
            return f"it dropped, and a {'tag' if move.is_branch else 'branch'} created under its name"
        case MoveKind.DROPPED:
            return "it dropped"
        case MoveKind.RENAMED:
            return f"it renamed to `{move.new_name}`"
        case MoveKind.RETENTION:
            return "a change of its retention"
        case MoveKind.EXPIRED:
            shown = ", ".join(map(str, move.expired[:_SHOWN]))
            more = f" and {len(move.expired) - _SHOWN} more" if len(move.expired) > _SHOWN else ""
            return f"{counted(len(move.expired), 'snapshot')} of its history removed: {shown}{more}"


def _refusals(rule: RefRule | UnreadableRule, move: RefMove, by: DecidedBy, scope: RuleScope) -> Iterator[Refused]:
    """The objections of a rule to a move, computed one at a time, because later ones may read files."""
    if isinstance(rule, UnreadableRule):
        if matches(rule.pattern, move.ref):
            why = f"stays as it is because the rule cannot be read ({rule.problem})"
            yield Refused(rule.pattern, move, why, scope.correction(rule.pattern), scope)
        return
    if not rule.applies_to(move.ref, is_branch=move.is_branch) or (by.caller is None and rule.bypass):
        return
    questions: tuple[Callable[[], _Found], ...] = (
        lambda: _by_writers(rule, move, by),
        lambda: _by_kind_of_move(rule, move, scope),
        lambda: _by_replayed_files(rule, move, by),
        lambda: _by_review(rule, move, by),
    )
    for ask in questions:
        found = ask()
        if found is not None:
            yield Refused(rule.pattern, move, *found, scope)


_Found = tuple[str, str] | None


def _by_writers(rule: RefRule, move: RefMove, by: DecidedBy) -> _Found:
    if rule.writers is None or by.caller is None or by.is_among(rule.writers) or move.kind is MoveKind.EXPIRED:
        return None
    names = ", ".join(f"`{name}`" for name in rule.writers)
    instead = "write to a branch of your own, and ask one of them to publish it"
    return f"is changed only by {names}, not by `{by.caller}`", instead


def _by_kind_of_move(rule: RefRule, move: RefMove, scope: RuleScope) -> _Found:
    publish = f"write to another branch, then publish it into `{move.ref}` by fast-forward or merge"
    forward = "add a commit that undoes what is not wanted"
    lift = f"remove the rule first if it is meant: {scope.removal(rule.pattern)}"
    kind = move.kind
    if rule.no_move and kind in _HEAD_CHANGES:
        return "does not move", "create another branch or tag"
    if rule.fast_forward_only and kind in _HEAD_LEAVES:
        return "moves only forward", forward
    if rule.only_publish and move.is_branch and kind in _NEW_HEAD and not move.published:
        return "moves only by publishing or merging another branch", publish
    if rule.no_rollback and kind in {MoveKind.ROLLED_BACK, MoveKind.DIVERGED}:
        return "is not rolled back", forward
    if rule.no_expiry and kind is MoveKind.EXPIRED:
        return "keeps its whole history", "expire the snapshots of other branches"
    if rule.is_firm and kind in _GONE:
        return "cannot be dropped or renamed, nor its table dropped, renamed or replaced", lift
    return None


def _by_replayed_files(rule: RefRule, move: RefMove, by: DecidedBy) -> _Found:
    if not (rule.only_publish and move.is_branch and move.replays) or by.replays_truly(move):
        return None
    (_, source), *_ = move.replays
    instead = f"merge the branch anew: a snapshot that replays {source} adds and removes the very files that it does"
    return "moves only by publishing or merging another branch, file by file", instead


def _by_review(rule: RefRule, move: RefMove, by: DecidedBy) -> _Found:
    if by.caller is None or move.kind not in _NEW_HEAD or move.after is None or not (rule.checks or rule.approvals):
        return None
    found = _reviewed(move, move.after.snapshot_id, by)
    head = move.after.snapshot_id if by.stand_in is None else by.stand_in.head
    nowhere = "; this catalog keeps no record of it, `bergline serve` does" if found is None else ""
    found = found or HeadReview()
    demands, steps = [], []
    missing = [check for check in rule.checks if check not in found.checks]
    if missing:
        names = ", ".join(f"`{check}`" for check in missing)
        demands.append(f"to a snapshot on which {names} passed")
        steps.append(_way_to_pass(names, head, move, by))
    own = {by.caller, None if by.stand_in is None else by.stand_in.author}
    others = len(found.approved_by - own - by.authors(move)) if rule.approvals else 0
    if others < rule.approvals:
        demands.append(f"with {counted(rule.approvals, 'approval')} of others, and has {others}")
        steps.append(f"have others approve snapshot {head}, who neither wrote nor publish it")
    return (f"moves only {', and only '.join(demands)}", f"{'; '.join(steps)}{nowhere}") if demands else None


def _way_to_pass(names: str, head: int, move: RefMove, by: DecidedBy) -> str:
    if by.stand_in is None or by.is_up_to_date(move):
        return f"have {names} pass on snapshot {head}"
    return (
        f"rebase the branch onto `{move.ref}` and have {names} pass on its new head: "
        f"`{move.ref}` has moved on, and no check has seen what a merge makes of both"
    )


def _reviewed(move: RefMove, head: int, by: DecidedBy) -> HeadReview | None:
    """What is on record about a new head, and about the one that stands in for it."""
    found = by.review(head, move.ref)
    if by.stand_in is None or found is None:
        return found
    stood_for = by.review(by.stand_in.head, move.ref) or HeadReview()
    checks = stood_for.checks if by.is_up_to_date(move) else frozenset()
    return HeadReview(found.checks | checks, found.approved_by | stood_for.approved_by)
