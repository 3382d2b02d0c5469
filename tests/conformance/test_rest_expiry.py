"""While a change is on its way to a REST server, what it was worked out on is overwritten, expired and deleted."""

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import Outcome, TableChange
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import NotFoundError, RefusedError
from bergline.table.commits.retry import Timing
from support.models.table_invariants import check_nothing_is_missing
from support.servers.bergline_server import BerglineServer
from support.servers.java_rest_server import JavaRestServer

COLUMNS = pa.schema([("id", pa.int64())])


class Overtaken(RestCatalog):
    """Somebody else acts before the first commit is sent."""

    other: Callable[[], object] | None = None

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        other, self.other = self.other, None
        if other is not None:
            other()
        return super().commit(changes)


class Two:
    """A table, by whoever is slow and by whoever comes first."""

    def __init__(self, uri: str, name: str) -> None:
        self._catalog = Overtaken(uri, {}, sleep=lambda _: None)
        self._slow = Lake(self._catalog, "slow", timing=Timing(sleep=lambda _: None))
        self._lake = Lake(RestCatalog(uri, {}), "quick")
        self._lake.create_namespace(name.split(".", maxsplit=1)[0])
        self.table = self._lake.create_table(name, COLUMNS)

    def overtake(self, other: Callable[[Table], object]) -> Table:
        """The table of the slow one, which the other one changes before its next commit."""
        slow = self._slow.load_table(self.table.name)
        self._catalog.other = lambda: other(self.table.refresh())
        return slow

    def check(self) -> None:
        """Every snapshot has all its files, and every ref can be read."""
        now = self.table.refresh()
        check_nothing_is_missing(now, merged=True)
        for ref in now.refs:
            now.scan(ref=ref).to_arrow()

    def close(self) -> None:
        self._lake.close()
        self._slow.close()


@pytest.fixture(params=["reference", "ours"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Two]:
    name = "java_rest_server" if request.param == "reference" else "bergline_server"
    server: JavaRestServer | BerglineServer = request.getfixturevalue(name)
    made = Two(server.uri, f"expiry_{tmp_path.name.replace('-', '_')}.orders")
    yield made
    made.close()


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": list(numbers)}, schema=COLUMNS)


def found(table: Table, **version: Any) -> list[int]:
    return sorted(table.refresh().scan(**version).to_arrow()["id"].to_pylist())


def replaced(table: Table) -> None:
    """Everything of `main` is overwritten, and what was there is expired."""
    table.overwrite(rows(100))
    expired(table)


def expired(table: Table) -> None:
    assert table.expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC), retain_last=1).deleted_files


@pytest.mark.parametrize("wap_id", [None, "w"])
def test_branch_or_staged_write_starts_at_what_main_is_by_then(two: Two, wap_id: str | None) -> None:
    two.table.append(rows(1))
    slow = two.overtake(replaced)
    if wap_id is None:
        slow.append(rows(2), branch="dev")
        assert found(slow, ref="dev") == [2, 100]
    else:
        slow.append(rows(2), wap_id=wap_id)
        assert found(slow, snapshot_id=slow.refs.staged("w").snapshot_id) == [2, 100]
    assert found(slow) == [100]
    two.check()


def diverged(table: Table) -> None:
    table.append(rows(1))
    table.refs.create_branch("dev")
    table.append(rows(2), branch="dev")
    table.append(rows(3))


def test_rebase_is_worked_out_on_what_the_other_branch_is_by_then(two: Two) -> None:
    diverged(two.table)
    slow = two.overtake(lambda t: t.append(rows(4)))
    slow.refs.rebase("dev", onto="main")
    assert found(slow, ref="dev") == [1, 2, 3, 4]
    two.check()


def test_branch_that_was_dropped_and_expired_is_not_merged(two: Two) -> None:
    diverged(two.table)

    def drop(table: Table) -> None:
        table.refs.drop_branch("dev")
        expired(table)

    with pytest.raises(NotFoundError, match="`dev`"):
        two.overtake(drop).refs.merge("dev", into="main")
    assert found(two.table) == [1, 3]
    two.check()


def test_snapshots_in_the_middle_that_were_expired_are_not_done_again(two: Two) -> None:
    """Its files are gone, though the branch still stands where it did."""
    diverged(two.table)
    two.table.overwrite(rows(5), branch="dev")
    with pytest.raises(RefusedError, match="expired"):
        two.overtake(expired).refs.merge("dev", into="main")
    assert found(two.table) == [1, 3]
    two.check()


def test_staged_snapshot_that_was_expired_is_not_published(two: Two) -> None:
    two.table.append(rows(1)).append(rows(2), wap_id="w")
    two.table.append(rows(3))
    with pytest.raises(NotFoundError, match="no snapshot staged"):
        two.overtake(expired).refs.publish("w")
    assert found(two.table) == [1, 3]
    two.check()


@pytest.mark.parametrize(
    "move",
    [
        lambda t, old: t.refs.create_branch("b", at=old),
        lambda t, old: t.refs.create_tag("b", at=old),
        lambda t, old: t.refs.rollback(to=old),
        lambda t, old: t.refs.set_current(to=old),
    ],
    ids=["branch", "tag", "rollback", "set current"],
)
def test_ref_is_not_moved_to_a_snapshot_that_was_expired(two: Two, move: Callable[[Table, int], object]) -> None:
    two.table.append(rows(1)).append(rows(2))
    old = two.table.metadata.snapshots[0].snapshot_id
    with pytest.raises(NotFoundError, match=f"no snapshot with id {old}"):
        move(two.overtake(lambda t: expired(t.overwrite(rows(3)))), old)
    assert found(two.table) == [3]
    two.check()


def test_new_branch_stands_at_what_main_is_by_then(two: Two) -> None:
    two.table.append(rows(1))
    slow = two.overtake(replaced)
    slow.refs.create_branch("b")
    assert found(slow, ref="b") == [100]
    two.check()


def test_writers_of_different_new_branches_do_not_get_in_each_others_way(two: Two) -> None:
    two.table.append(rows(1))
    slow = two.overtake(lambda t: t.append(rows(2), branch="other"))
    slow.append(rows(3), branch="dev")
    assert found(slow, ref="dev") == [1, 3]
    assert found(slow, ref="other") == [1, 2]
    two.check()
