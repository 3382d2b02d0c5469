"""`bergline quickstart`: a small example lake to explore."""

import sys
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.cli.settings import FILE_NAME
from bergline.errors import AlreadyExistsError
from bergline.lake.lake import Lake, connect

app = typer.Typer()
_ORDERS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("region", pa.string()), ("amount", pa.float64())],
)
_TRY = (
    "bergline log shop.orders --graph",
    "bergline refs shop.orders",
    "bergline read shop.orders --at monday",
    "bergline branch diff shop.orders main experiment",
    "bergline branch merge shop.orders experiment --into main",
    'bergline sql -e "SELECT region, sum(amount) FROM shop.orders GROUP BY region"',
)


@app.command()
def quickstart(
    directory: Annotated[Path, typer.Argument(help="Where the lake goes", metavar="[DIRECTORY]")] = Path("quickstart"),
    *,
    as_json: AsJson = False,
) -> None:
    """Create a lake with the orders of a small shop: branches, a merge and a tag; and print what to try."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise AlreadyExistsError(
            f"expected a new or empty directory, found `{directory}` with files in it",
            kind="directory",
            name=str(directory),
            hints=["bergline quickstart another-directory"],
        )
    directory.mkdir(parents=True, exist_ok=True)
    catalog = "sqlite:///catalog.db"
    with connect(f"sqlite:///{directory.absolute()}/catalog.db", create=True) as lake:
        story = _tell(lake)
    (directory / FILE_NAME).write_text(f'catalog = "{catalog}"\n', encoding="utf-8")
    if as_json:
        print_json({"directory": str(directory), "table": "shop.orders", "story": story, "try": list(_TRY)})
        return
    sys.stderr.write(f"a lake in `{directory}`; its table is `shop.orders`:\n")
    sys.stderr.writelines(f"  {line}\n" for line in story)
    sys.stderr.write("try:\n")
    sys.stderr.flush()
    print_lines([f"  cd {directory}", *(f"  {line}" for line in _TRY)])


def _tell(lake: Lake) -> list[str]:
    """Write, audit, publish; and an experiment that is still open."""
    lake.create_namespace("shop")
    orders = lake.create_table("shop.orders", _ORDERS, partition_by=["region"])
    orders.append(_rows((1, "eu", 10.0), (2, "us", 20.0), (3, "eu", 30.0)))
    orders.refs.create_tag("monday")
    orders.append(_rows((4, "us", 45.0), (5, "us", -999.0)), branch="audit")
    orders.delete("amount < 0", branch="audit")
    orders.append(_rows((6, "eu", 60.0)))
    merged = orders.refs.merge("audit", into="main")
    orders.refs.create_branch("experiment")
    orders.append(_rows((7, "asia", 70.0)), branch="experiment")
    orders.refs.create_tag("tuesday")
    return [
        "3 orders came in on `main`, which was tagged `monday`",
        "2 more went to the branch `audit`, where a bad one was found and deleted",
        "meanwhile `main` got another order",
        f"`audit` was merged: its {len(merged.replayed)} snapshots were replayed on `main`, now tagged `tuesday`",
        "`experiment` is a branch with an order of its own, not merged yet",
    ]


def _rows(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(_ORDERS.names, row, strict=True)) for row in rows], schema=_ORDERS)
