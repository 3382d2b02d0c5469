"""What metadata tables are made from."""

from bergline import Table
from bergline.format.manifest.manifest import ManifestContent
from bergline.table.inspection.metadata_view import MetadataView, of_content
from support.fixtures.rows import order_rows


def view(table: Table) -> MetadataView:
    return MetadataView(table.io, table.metadata, table.metadata_location, table.current_snapshot)


def test_empty_table_has_no_manifests(orders: Table) -> None:
    assert (view(orders).manifests(), view(orders).all_manifests()) == ([], [])


def test_manifests_of_all_snapshots_are_each_there_once(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2)).delete("id = 1")
    seen = view(orders)
    paths = [m.manifest_path for m in seen.all_manifests()]
    assert len(paths) == len(set(paths)) == 3
    assert of_content(seen.manifests(), ManifestContent.DELETES) == []
    assert of_content(seen.manifests(), None) == seen.manifests()


def test_live_entries_leave_out_removed_files(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2)).delete("id = 1")
    seen = view(orders)
    (every,), (live,) = seen.entries(seen.manifests()).values(), seen.live_entries(seen.manifests()).values()
    assert (every.height, live.height) == (2, 1)
    assert live["sequence_number"].to_list() == [2]
