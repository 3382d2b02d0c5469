"""Every move under every restriction, and what the refusal says."""

import pytest
from ref_histories import branch, tag

from bergline.catalog.protection.caller import StandIn
from bergline.catalog.protection.decision import Allowed, DecidedBy, HeadReview, Refused, decide
from bergline.catalog.protection.ref_moves import MoveKind, RefMove
from bergline.catalog.protection.ref_rule import parse_rule
from bergline.catalog.protection.rule_scope import scope_of
from bergline.catalog.protection.table_rules import UnreadableRule, read_rules

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


def test_branch_that_becomes_a_tag_is_both() -> None:
    replaced = RefMove("v1", MoveKind.REPLACED, tag(1), branch(1))
    for kind in ("branch", "tag"):
        assert isinstance(decide([parse_rule("v*", f"kind={kind}; no-move")], [replaced], ANN), Refused)


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
    by = DecidedBy("ann", lambda head: records.get(head, HeadReview()))
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
            lambda head: records.get(head, HeadReview()),
            stand_in=StandIn(7),
            is_up_to_date=lambda _, same=same_content: same,
        )
        assert isinstance(decide([parse_rule("main", "approvals=1")], [PUBLISHED], by), Allowed)
        decided = decide([parse_rule("main", "checks=dq")], [PUBLISHED], by)
        assert isinstance(decided, Allowed) is same_content
        if isinstance(decided, Refused):
            assert decided.instead.startswith("rebase the branch onto `main` and have `dq` pass on its new head")
    by = DecidedBy("ann", lambda head: records.get(head, HeadReview()), stand_in=StandIn(7, author="bob"))
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
