"""A write's scope: which writes a pipeline's step may do, and what their snapshots say."""

import msgspec
import pytest

from bergline import Table
from bergline.errors import RefusedError
from bergline.spark.writes.scope import WriteScope


@pytest.fixture
def scope(orders: Table) -> WriteScope:
    """A step that may write to `orders`."""
    tables = {str(orders.metadata.table_uuid): "db.orders"}
    return WriteScope(pipeline="daily", run_id="7", step="load", branch="daily-7.1-ab", tables=tables)


def test_step_may_write_to_its_branch_of_its_tables(scope: WriteScope, orders: Table) -> None:
    scope.check_write(orders, "daily-7.1-ab", None)
    assert scope.summary == {"bergline.pipeline": "daily", "bergline.run-id": "7", "bergline.step": "load"}
    assert str(scope) == "step `load` of pipeline daily, run 7"


@pytest.mark.parametrize(
    ("changes", "branch", "wap_id", "said"),
    [
        ({}, "main", None, "cannot write to `main` in a pipeline, whose branch is `daily-7.1-ab`"),
        ({}, "daily-7.1-ab", "w", "cannot write to `daily-7.1-ab` in a pipeline"),
        ({"tables": {"?": "db.items"}}, "daily-7.1-ab", None, "cannot write to `db.orders` in a pipeline of db.items"),
        ({"step": None}, "daily-7.1-ab", None, "cannot write to `db.orders` in an audit"),
        ({"has_ended": True}, "daily-7.1-ab", None, "cloned in step `load` of pipeline daily, run 7, which has ended"),
    ],
)
def test_other_writes_are_refused(
    scope: WriteScope, orders: Table, changes: dict[str, object], branch: str, wap_id: str | None, said: str
) -> None:
    with pytest.raises(RefusedError) as caught:
        msgspec.structs.replace(scope, **changes).check_write(orders, branch, wap_id)
    assert said in str(caught.value)


def test_audits_have_no_step(scope: WriteScope) -> None:
    audits = msgspec.structs.replace(scope, step=None)
    assert audits.summary == {"bergline.pipeline": "daily", "bergline.run-id": "7"}
    assert str(audits) == "the audits of pipeline daily, run 7"
