"""Every move under every restriction, and what the refusal says."""

from collections.abc import Callable
from typing import Any

import pytest

from bergline.catalog.protection.caller import StandIn
from bergline.catalog.protection.decision import Allowed, DecidedBy, HeadReview, Refused, decide, refusals
from bergline.catalog.protection.ref_moves import MoveKind, RefMove, find_ref_moves
from bergline.catalog.protection.ref_rule import parse_rule
from bergline.catalog.protection.rule_scope import TABLE, RuleScope, scope_of
from bergline.catalog.protection.table_rules import UnreadableRule, read_rules
from bergline.format.metadata.refs import SnapshotRef
from support.fixtures.ref_histories import branch, history, tag

ANN = DecidedBy("ann")
PUBLISHED = RefMove("main", MoveKind.FORWARD, branch(1), branch(2), published=True)
MOVES = {
    "created": RefMove("main", MoveKind.CREATED, None, branch(2)),
    "published": PUBLISHED,
    "forward": RefMove("main", MoveKind.FORWARD, branch(1), branch(2)),
    "rolled back": RefMove("main", MoveKind.ROLLED_BACK, branch(2), branch(1)),
    "diverged": RefMove("main", MoveKind.DIVERGED, branch(2), branch(3)),
    "replaced": RefMove("main", MoveKind.REPLACED, branch(2), branch(3)),
    "dropped": RefMove("main", MoveKind.DROPPED, branch(2), None),
    "renamed": RefMove("main", MoveKind.RENAMED, branch(2), None, new_name="old"),
    "retention": RefMove("main", MoveKind.RETENTION, branch(2), branch(2)),
    "expired": RefMove("main", MoveKind.EXPIRED, branch(2), branch(2), expired=(1, 5, 6, 7)),
}
GONE = {"dropped", "renamed"}
LEAVES = {"rolled back", "diverged", "replaced"}
HEADS = {"created", "published", "forward"} | LEAVES


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("writers=zoe", MOVES.keys() - {"expired"}),
        ("writers=zoe,ann", set()),
        ("only-publish", GONE | LEAVES | {"created", "forward"}),
        ("fast-forward-only", GONE | LEAVES),
        ("no-drop", GONE),
        ("no-move", GONE | HEADS - {"created"}),
        ("no-rollback", GONE | {"rolled back", "diverged"}),
        ("no-expiry", GONE | {"expired"}),
        ("checks=dq", GONE | HEADS),
        ("approvals=1", GONE | HEADS),
        ("kind=tag; no-drop", set()),
        ("no-move; bypass=ann", set()),
    ],
)
def test_each_restriction_refuses_its_moves(text: str, refused: set[str]) -> None:
    rules = [parse_rule("ma*", text)]
    assert {name for name, move in MOVES.items() if isinstance(decide(rules, [move], ANN), Refused)} == set(refused)


def test_refs_that_no_rule_names_move_freely() -> None:
    assert decide([parse_rule("release/*", "no-move")], MOVES.values(), ANN) == Allowed()


def test_tags_are_not_published() -> None:
    created = RefMove("v1", MoveKind.CREATED, None, tag(1))
    moved = RefMove("v1", MoveKind.FORWARD, tag(1), tag(2))
    assert decide([parse_rule("*", "only-publish")], [created, moved], ANN) == Allowed()
    assert isinstance(decide([parse_rule("v*", "kind=tag; no-move")], [moved], ANN), Refused)


@pytest.mark.parametrize("scope", [scope_of(()), scope_of(("db",)), TABLE])
@pytest.mark.parametrize(
    "text", ["only-publish", "fast-forward-only", "no-rollback", "no-move", "no-drop", "no-expiry", "writers=zoe"]
)
@pytest.mark.parametrize("kind", ["", "; kind=branch"])
def test_branch_that_becomes_a_tag_is_dropped(text: str, kind: str, scope: RuleScope) -> None:
    base = history({1: None, 2: 1, 3: 2}, main=3)
    for head in (3, 1):
        moves = find_ref_moves(base, history({1: None, 2: 1, 3: 2}, main=tag(head)))
        refused = decide([parse_rule("main", text + kind)], moves, ANN, scope)
        assert isinstance(refused, Refused)
        assert refused.sentence("db.orders").startswith("branch `main` of")
        assert refused.sentence("db.orders").endswith("found it dropped, and a tag created under its name")


def test_tag_that_becomes_a_branch_is_dropped_and_a_branch_created() -> None:
    moves = find_ref_moves(history({1: None}, v1=tag(1)), history({1: None}, v1=branch(1)))
    for text in ("kind=tag; no-move", "kind=branch; only-publish", "kind=tag; writers=zoe", "kind=branch; writers=zoe"):
        assert isinstance(decide([parse_rule("v*", text)], moves, ANN), Refused)
    assert decide([parse_rule("v*", "kind=branch; no-move")], moves, ANN) == Allowed()


def test_ancestor_under_the_id_of_another_is_a_rollback() -> None:
    base = history({1: None, 2: 1, 3: 2}, main=3)
    moves = find_ref_moves(base, history({1: None, 2: 1, 3: 2}, {2: {"operation": "delete"}}, main=3))
    for text in ("no-rollback", "fast-forward-only", "only-publish", "no-move"):
        refused = decide([parse_rule("main", text)], moves, ANN)
        assert isinstance(refused, Refused)
        assert refused.sentence("db.orders").endswith("found other snapshots under the ids of its history")
    refused = decide([parse_rule("main", "no-expiry")], moves, ANN)
    assert isinstance(refused, Refused)
    assert refused.sentence("db.orders").endswith("found 1 snapshot of its history removed: 2")


def test_every_rule_must_allow_it() -> None:
    rules = [parse_rule("*", "writers=ann"), parse_rule("main", "no-rollback")]
    assert decide(rules, [MOVES["forward"]], ANN) == Allowed()
    refused = decide(rules, [MOVES["rolled back"]], ANN)
    assert isinstance(refused, Refused)
    assert refused.rule == "main"


def test_bypass_is_of_one_rule_and_is_told() -> None:
    lenient, strict = parse_rule("*", "no-rollback; bypass=ann"), parse_rule("main", "fast-forward-only")
    allowed = decide([lenient], [MOVES["rolled back"]], ANN)
    assert isinstance(allowed, Allowed)
    assert [(b.rule, b.move.ref) for b in allowed.bypassed] == [("*", "main")]
    refused = decide([lenient, strict], [MOVES["rolled back"]], ANN)
    assert isinstance(refused, Refused)
    assert refused.rule == "main"


def test_checks_and_approvals_are_of_the_new_head_and_of_others() -> None:
    records = {2: HeadReview(frozenset({"dq"}), frozenset({"ann", "bob"}))}
    by = DecidedBy("ann", lambda head, _: records.get(head, HeadReview()))
    for text, is_allowed in {
        "checks=dq": True,
        "checks=dq,pii": False,
        "approvals=1": True,
        "approvals=2": False,
    }.items():
        assert isinstance(decide([parse_rule("main", text)], [PUBLISHED], by), Allowed) is is_allowed
    assert isinstance(decide([parse_rule("main", "checks=dq")], [MOVES["diverged"]], by), Refused)


def test_without_a_name_what_depends_on_it_is_left_to_the_server() -> None:
    server = DecidedBy(None)
    for text in ("writers=zoe", "checks=dq", "approvals=1", "no-move; bypass=zoe"):
        assert decide([parse_rule("main", text)], [MOVES["forward"]], server) == Allowed()
    assert isinstance(decide([parse_rule("main", "only-publish")], [MOVES["forward"]], server), Refused)


def test_rule_that_cannot_be_read_keeps_its_refs_as_they_are() -> None:
    rules = read_rules({"bergline.ref-rules.ma*": "nothing"})
    assert all(isinstance(decide(rules, [move], ANN), Refused) for move in MOVES.values())
    refused = decide(rules, [MOVES["forward"]], ANN)
    assert isinstance(refused, Refused)
    assert refused.instead == "correct the property `bergline.ref-rules.ma*`, or remove it"
    assert decide(rules, [RefMove("dev", MoveKind.DROPPED, branch(1), None)], ANN) == Allowed()


@pytest.mark.parametrize(
    ("text", "move", "sentence"),
    [
        (
            "only-publish",
            "forward",
            "only by publishing or merging another branch, found a commit that moves it to snapshot 2",
        ),
        ("only-publish", "created", "found it created at snapshot 2"),
        ("writers=zoe", "retention", "it is changed only by `zoe`, not by `ann`, found a change of its retention"),
        ("no-rollback", "rolled back", "it is not rolled back, found a rollback to snapshot 1"),
        ("fast-forward-only", "diverged", "found a move to snapshot 3, which leaves snapshot 2 behind"),
        ("fast-forward-only", "replaced", "found a replacement by snapshot 3, which has another history"),
        ("no-drop", "renamed", "found it renamed to `old`"),
        (
            "no-expiry",
            "expired",
            "keeps its whole history, found 4 snapshots of its history removed: 1, 5, 6 and 1 more",
        ),
        ("checks=dq,pii", "forward", "it moves only to a snapshot on which `dq`, `pii` passed"),
        ("approvals=2", "forward", "it moves only with 2 approvals of others, and has 0"),
        ("checks=dq; approvals=1", "forward", "a snapshot on which `dq` passed, and only with 1 approval of others"),
    ],
)
def test_refusal_is_one_sentence(text: str, move: str, sentence: str) -> None:
    refused = decide([parse_rule("ma*", text)], [MOVES[move]], ANN)
    assert isinstance(refused, Refused)
    said = refused.sentence("db.orders")
    assert said.startswith("branch `main` of table `db.orders` is protected by the rule `ma*`: it ")
    assert sentence in said
    assert refused.instead


def test_dropped_table_is_what_was_found() -> None:
    refused = decide([parse_rule("main", "no-drop")], [MOVES["dropped"]], ANN)
    assert isinstance(refused, Refused)
    assert refused.sentence("db.orders", "the table dropped").endswith("found the table dropped")


def test_stand_in_gives_its_approvals_and_its_checks_if_it_is_alike() -> None:
    records = {7: HeadReview(frozenset({"dq"}), frozenset({"bob"}))}
    for same_content in (True, False):
        by = DecidedBy(
            "ann",
            lambda head, _: records.get(head, HeadReview()),
            stand_in=StandIn(7),
            is_up_to_date=lambda _, same=same_content: same,
        )
        assert isinstance(decide([parse_rule("main", "approvals=1")], [PUBLISHED], by), Allowed)
        decided = decide([parse_rule("main", "checks=dq")], [PUBLISHED], by)
        assert isinstance(decided, Allowed) is same_content
        if isinstance(decided, Refused):
            assert decided.instead.startswith("rebase the branch onto `main` and have `dq` pass on its new head")
    by = DecidedBy("ann", lambda head, _: records.get(head, HeadReview()), stand_in=StandIn(7, author="bob"))
    assert isinstance(decide([parse_rule("main", "approvals=1")], [PUBLISHED], by), Refused)


def test_where_no_record_is_kept_the_refusal_says_so() -> None:
    refused = decide([parse_rule("main", "approvals=1")], [PUBLISHED], ANN)
    assert isinstance(refused, Refused)
    assert refused.instead.endswith("this catalog keeps no record of it, `bergline serve` does")


def test_scope_of_a_rule_is_in_the_sentence_and_in_the_advice() -> None:
    scope = scope_of(("db", "raw"))
    refused = decide([parse_rule("main", "no-drop")], [MOVES["dropped"]], ANN, scope)
    assert isinstance(refused, Refused)
    assert "the rule `main` of namespace `db.raw`: it cannot be dropped" in refused.sentence("db.raw.orders")
    assert refused.instead.endswith("`lake.rules.unprotect('main', namespace='db.raw')`")
    unreadable = decide([UnreadableRule("main", "odd")], [MOVES["forward"]], ANN, scope_of(()))
    assert isinstance(unreadable, Refused)
    assert unreadable.instead == "set the rule anew, or remove it: `lake.rules.unprotect('main')`"


def test_caller_without_a_name_is_in_no_list() -> None:
    assert not DecidedBy(None, groups=frozenset({"ops"})).is_among(("group:ops",))


def test_refusals_are_all_that_rules_say() -> None:
    rules = [parse_rule("main", "no-drop; bypass=zoe"), parse_rule("*", "no-rollback"), UnreadableRule("ma*", "odd")]
    moves = [MOVES["dropped"], MOVES["rolled back"]]
    found = {who: [(r.rule, r.move.kind) for r in refusals(rules, moves, DecidedBy(who))] for who in ("ann", "zoe")}
    others = [("*", "dropped"), ("*", "rolled back"), ("ma*", "dropped"), ("ma*", "rolled back")]
    assert found == {"ann": [("main", "dropped"), *others], "zoe": others}


def test_few_expired_snapshots_are_all_shown() -> None:
    move = RefMove("main", MoveKind.EXPIRED, branch(2), branch(2), expired=(1, 5, 6))
    refused = decide([parse_rule("main", "no-expiry")], [move], ANN)
    assert isinstance(refused, Refused)
    assert refused.sentence("db.orders").endswith("3 snapshots of its history removed: 1, 5, 6")


@pytest.mark.parametrize(
    ("text", "of", "replays", "is_allowed"),
    [
        ("only-publish", branch, ((2, 9),), False),
        ("only-publish", branch, (), True),
        ("only-publish", tag, ((2, 9),), True),
        ("no-drop", branch, ((2, 9),), True),
    ],
)
def test_replays_that_are_not_true_are_no_publish(
    text: str, of: Callable[[int], SnapshotRef], replays: tuple[tuple[int, int], ...], is_allowed: bool
) -> None:
    move = RefMove("main", MoveKind.FORWARD, of(1), of(2), published=True, replays=replays)
    decided = decide([parse_rule("main", text)], [move], DecidedBy("ann", replays_truly=lambda _: False))
    assert isinstance(decided, Allowed) is is_allowed
    assert decide([parse_rule("main", text)], [move], ANN) == Allowed()


def test_reviews_are_looked_at_only_where_a_rule_demands_them() -> None:
    def review(_head: int, _ref: str) -> HeadReview:
        raise AssertionError

    assert decide([parse_rule("main", "no-drop")], [PUBLISHED], DecidedBy("ann", review)) == Allowed()


def test_reviews_are_those_for_the_ref() -> None:
    by = DecidedBy("ann", lambda _, ref: HeadReview(frozenset({"dq"} if ref == "main" else ())))
    moved = RefMove("load/b", MoveKind.FORWARD, branch(1), branch(2))
    assert decide([parse_rule("main", "checks=dq")], [PUBLISHED], by) == Allowed()
    assert isinstance(decide([parse_rule("*", "checks=dq")], [moved], by), Refused)


def test_way_to_pass_is_said() -> None:
    def way(**given: Any) -> str:
        records = {2: HeadReview()}
        by = DecidedBy("ann", lambda head, _: records.get(head), **given)
        refused = decide([parse_rule("main", "checks=dq")], [PUBLISHED], by)
        assert isinstance(refused, Refused)
        return refused.instead

    assert way() == "have `dq` pass on snapshot 2"
    assert way(stand_in=StandIn(7), is_up_to_date=lambda _: True) == "have `dq` pass on snapshot 7"
    assert way(stand_in=StandIn(7)).startswith("rebase the branch onto `main`")
    assert way(stand_in=StandIn(7), is_up_to_date=lambda _: True, groups=frozenset()) != way()


def test_where_no_record_is_kept_a_merge_has_none() -> None:
    refused = decide([parse_rule("main", "approvals=1")], [PUBLISHED], DecidedBy("ann", stand_in=StandIn(7)))
    assert isinstance(refused, Refused)
    assert refused.instead.endswith("this catalog keeps no record of it, `bergline serve` does")
