"""Delete files that apply to no data file once some were rewritten."""

from bergline import Lake
from bergline.table.operations.dangling_deletes import dangling_deletes
from support.fixtures.add_deletes import add_deletes, equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows


def test_deletes_of_rewritten_files_dangle_and_others_do_not(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2)).append(order_rows(3, 4))
    first, second = (p.file for p in sorted(table.scan().plan().files, key=lambda p: p.file.file_path))
    about_first = position_deletes(table, {first.file_path: [0]})
    about_second = position_deletes(table, {second.file_path: [0]})
    by_key = equality_deletes(table, order_rows(4).select(["id"]), [table.schema.find("id").id])
    add_deletes(table, about_first, about_second, by_key)
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None

    def dangling(*rewritten: object) -> set[str]:
        number = snapshot.sequence_number
        found = dangling_deletes(table.io, table.metadata, snapshot, rewritten, number)  # type: ignore[arg-type]
        return {f.file_path for f in found}

    assert dangling() == set()
    assert dangling(first) == {about_first.file_path}
    # the rewritten rows have the deletes applied, and the number of the snapshot that had them
    assert dangling(first, second) == {d.file_path for d in (about_first, about_second, by_key)}
