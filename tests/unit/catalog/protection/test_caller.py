"""Who makes a change."""

import getpass
import threading

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import StandIn, acting_as, current_caller, is_among, standing_for


def test_caller_is_who_runs_the_process() -> None:
    assert current_caller().name == getpass.getuser()


def test_served_principal_is_the_caller_in_its_own_thread() -> None:
    elsewhere: list[str] = []
    with acting_as("etl") as caller:
        assert current_caller() is caller
        other = threading.Thread(target=lambda: elsewhere.append(current_caller().name))
        other.start()
        other.join()
        with acting_as("ci"):
            assert current_caller().name == "ci"
        assert current_caller().name == "etl"
    assert elsewhere == [getpass.getuser()]
    assert current_caller().name == getpass.getuser()


def test_groups_are_named_as_groups() -> None:
    assert is_among(("etl", "group:ops"), "zoe", {"ops"})
    assert not is_among(("etl", "group:ops"), "group:ops", ())
    assert not is_among(("ops",), "zoe", {"ops"})
    assert not is_among((), "", {""})


def test_heads_stand_for_merges_only_in_their_block() -> None:
    table = TableName(("db",), "orders")
    with acting_as("ann", {"team"}) as caller:
        with standing_for({table: 7}, "zoe"):
            assert current_caller() is caller
            assert caller.stands_for == {table: StandIn(7, "zoe")}
        assert caller.stands_for == {}
    with standing_for({table: 7}, "zoe"):
        assert set(current_caller().stands_for) == {table}
    assert current_caller().stands_for == {}
