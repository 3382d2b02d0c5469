"""Grants from words."""

import pytest

from bergline.errors import InvalidInputError
from bergline.governance.grants.grant import make_grants, parse_grantee, parse_grants, parse_member, principal


def test_words_of_a_command_are_grants() -> None:
    words = "read,write on table db.orders to alice"
    assert [str(grant) for grant in parse_grants(words.split())] == [
        "read on table db.orders to alice",
        "write on table db.orders to alice",
    ]
    (one,) = parse_grants(
        ["manage_refs", "ON", "namespace", "db", "ref", "release/*", "from", "role:etl"], revokes=True
    )
    assert str(one) == "manage-refs on namespace db ref release/* to role:etl"
    (one,) = parse_grants(["administer", "on", "catalog", "to", "group:admins"])
    assert str(one) == "administer on catalog to group:admins"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "expected words like"),
        ("read", "expected words like"),
        ("read table db.orders to alice", "expected `on`, found `table`"),
        ("raed on table db.orders to alice", "expected one of `list`"),
        ("read on tables db.orders to alice", "expected `catalog`, `namespace db`"),
        ("read on table orders to alice", "expected a table name like"),
        ("read on table db.orders for alice", "expected `to`, found `for`"),
        ("read on table db.orders from alice", "expected `to`, found `from`"),
        ("read on table db.orders to alice bob", "found `bob`"),
        ("read on table db.orders ref main to alice", "for some refs alone, found `read`"),
        ("write on view db.recent ref main to alice", "which has none"),
        ("read on table db.orders to role:", "without spaces around it"),
        ("write on table db.orders ref  to alice", "expected `to`"),
        ("read on namespace " + "n" * 300 + " to alice", "up to 255 characters"),
    ],
)
def test_words_that_are_no_grant_are_refused(words: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        parse_grants(words.split())


def test_name_that_looks_like_a_role_is_kept_apart() -> None:
    assert str(principal("role:x")) == "principal:role:x"
    assert parse_grantee("principal:role:x") == principal("role:x")
    assert parse_grantee("service:x") == principal("service:x")
    with pytest.raises(InvalidInputError, match="expected a principal or a group"):
        parse_member("role:x")


def test_privileges_may_be_a_list() -> None:
    assert len(make_grants(["read", "write", "read"], "catalog", "ann")) == 2
    with pytest.raises(InvalidInputError, match="`catalog` alone"):
        make_grants("read", "catalog db", "ann")
