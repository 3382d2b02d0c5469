"""Runs of pipelines that were published: known after their snapshots have expired, and forgotten when rolled back."""

import datetime as dt
import json
from functools import partial

import pytest

from bergline import Lake, Table
from bergline.errors import FormatError, InvalidInputError
from bergline.table.references.published_runs import KEPT_RUNS, PUBLISHED_RUNS, PublishedRun, has_run
from support.fixtures.competing_writers import overtaken
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows

LATER = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def publish(lake: Lake, run_id: str, order: int, pipeline: str = "daily") -> None:
    """One run that adds an order."""
    branch = f"{pipeline}-{run_id}"
    table = lake.load_table("db.orders")
    table.refs.create_branch(branch)
    table.append(order_rows(order), branch=branch)
    lake.publish(branch, tables=["db.orders"], merge=True, run=PublishedRun(pipeline, run_id))


def knows(orders: Table, run_id: str, pipeline: str = "daily") -> bool:
    return has_run(orders.refresh().metadata, "main", PublishedRun(pipeline, run_id))


def kept(orders: Table) -> dict[str, list[str]]:
    return {name: list(runs) for name, runs in json.loads(orders.refresh().properties[PUBLISHED_RUNS]).items()}


@pytest.fixture(autouse=True)
def first_rows(orders: Table) -> None:
    orders.append(order_rows(1))


def test_run_is_known_after_its_snapshots_have_expired(lake: Lake, orders: Table) -> None:
    publish(lake, "1", 2)
    assert knows(orders, "1")
    orders.append(order_rows(3)).expire(older_than=LATER)
    assert len(orders.metadata.snapshots) == 1
    assert knows(orders, "1")
    assert not knows(orders, "2")
    assert not knows(orders, "1", "hourly")


def test_run_is_kept_only_in_tables_that_it_wrote_to(lake: Lake, orders: Table) -> None:
    items = lake.create_table("db.items", ORDERS).append(order_rows(1))
    lake.branch("b", ["db.orders", "db.items"])
    lake.load_table("db.orders").append(order_rows(2), branch="b")
    lake.publish("b", run=PublishedRun("daily", "1"))
    assert kept(orders) == {"daily": ["1"]}
    assert PUBLISHED_RUNS not in items.refresh().properties


def test_run_that_was_rolled_back_is_not_known(lake: Lake, orders: Table) -> None:
    before = orders.current_snapshot
    assert before is not None
    publish(lake, "1", 2)
    orders.refresh().refs.rollback(to=before.snapshot_id)
    assert not knows(orders, "1")
    orders.append(order_rows(3))
    published = next(s for s in orders.metadata.snapshots if s.summary.get("added-records") and s.sequence_number == 2)
    orders.expire(snapshot_ids=[published.snapshot_id], retain_last=10)
    assert not knows(orders, "1")  # the history of `main` is whole, and goes on without it
    publish(lake, "1", 2)
    assert knows(orders, "1")


def test_run_that_was_rolled_back_and_expired_is_told_by_older_snapshots(lake: Lake, orders: Table) -> None:
    publish(lake, "1", 2)
    metadata = orders.refresh().metadata
    known = json.loads(orders.properties[PUBLISHED_RUNS])["daily"]["1"]
    later = {"daily": {"1": [12345, known[1] + 2]}}
    orders.append(order_rows(3)).expire(older_than=LATER, retain_last=2)
    assert metadata.current_snapshot_id in orders.metadata.snapshots_by_id
    orders.set_properties({PUBLISHED_RUNS: json.dumps(later)})
    assert not knows(orders, "1")


def test_run_whose_snapshot_only_a_tag_has_kept_is_known(lake: Lake, orders: Table) -> None:
    publish(lake, "1", 2)
    orders.refresh().refs.create_tag("v1")
    orders.append(order_rows(3)).append(order_rows(4)).expire(older_than=LATER)
    assert len(orders.metadata.snapshots) == 2
    assert knows(orders, "1")


def test_only_so_many_runs_of_each_pipeline_are_kept(lake: Lake, orders: Table) -> None:
    orders.set_properties({KEPT_RUNS: "2"})
    for number, pipeline in enumerate(["daily", "hourly", "hourly", "hourly", "hourly"]):
        publish(lake, str(number), number, pipeline)
    assert kept(orders) == {"daily": ["0"], "hourly": ["3", "4"]}
    with pytest.raises(InvalidInputError, match="expected a whole number of 1 or more"):
        orders.set_properties({KEPT_RUNS: "0"})


def test_runs_that_are_published_at_once_are_all_kept(lake: Lake, orders: Table) -> None:
    late = overtaken(lake, *([lambda: None] * 2), lambda: publish(lake, "first", 7))
    publish(late, "second", 8)
    assert knows(orders, "first")
    assert knows(orders, "second")
    run_at_once(*(partial(publish, lake, str(n), 10 + n, "daily" if n % 2 else "hourly") for n in range(6)))
    assert {run for runs in kept(orders).values() for run in runs} == {"first", "second", *map(str, range(6))}
    assert ids(orders.scan().to_arrow()) == [1, 7, 8, *range(10, 16)]


def test_property_that_is_no_list_of_runs_is_one_clear_error(orders: Table) -> None:
    orders.set_properties({PUBLISHED_RUNS: "yesterday's"})
    with pytest.raises(FormatError, match="expected the published runs of pipelines as JSON in property"):
        knows(orders, "1")


def test_run_is_known_after_its_table_was_replaced(lake: Lake, orders: Table) -> None:
    publish(lake, "1", 2)
    rows = orders.refresh().scan()
    with lake.stage_table("db.orders", ORDERS, replace=True, validate_from=rows) as table:
        table.append(rows.to_arrow())
    assert knows(orders, "1")
