from pathlib import Path

import pytest

import bergline
from bergline import Lake
from bergline.catalog.sql.records import records_of
from bergline.console.page import Source
from bergline.console.pages.events import events_page
from bergline.errors import InvalidInputError
from bergline.governance.events.model import Event
from bergline.governance.events.store import append_events


def test_events_are_listed_newest_first_of_all_and_of_one_table(source: Source, lake: Lake) -> None:
    records = records_of(lake.catalog)
    with records.database.changing() as connection:
        name = records.catalog_name
        append_events(
            connection,
            [
                Event(name, "namespace.create", "namespace/db", "ann", 1, {"namespace": "db"}),
                Event(name, "table.commit", "table/db/orders", "bob", 2, {"snapshot-id": "7"}),
                Event(name, "ref.move", "table/db/orders", "bob", 2, {"ref": "main"}),
            ],
        )
    found = events_page(source, {}).values["events"]
    assert [(e["position"], e["type"], e["subject"], e["table"], e["detail"]) for e in found] == [
        (3, "ref.move", "db.orders", "db.orders", "main"),
        (2, "table.commit", "db.orders", "db.orders", None),
        (1, "namespace.create", "db", None, None),
    ]
    page = events_page(source, {"name": "db.orders", "type": "ref.*"})
    assert [e["position"] for e in page.values["events"]] == [3]
    assert page.title == "Events of db.orders"
    assert events_page(source, {"limit": "2"}).values["more"] is True
    with pytest.raises(InvalidInputError, match="expected a limit from 1 to 1000"):
        events_page(source, {"limit": "many"})


def test_catalog_without_an_event_log_says_so(source: Source) -> None:
    with bergline.connect("memory:") as lake:
        found = events_page(Source(lake, 0), {}).values
    assert "has no event log" in found["problem"]["message"]


def test_database_is_left_as_it_is(source: Source, lake: Lake, tmp_path: Path) -> None:
    before = (tmp_path / "catalog.db").read_bytes()
    events_page(source, {})
    assert (tmp_path / "catalog.db").read_bytes() == before
