"""The table that most tests use: orders."""

import pyarrow as pa

ORDERS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("amount", pa.float64()), ("region", pa.string())])


def order_rows(*ids: int, region: str = "eu") -> pa.Table:
    """Orders with these ids."""
    columns = [list(ids), [float(i) * 10 for i in ids], [region] * len(ids)]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, ORDERS, strict=True)], schema=ORDERS)


def ids(rows: pa.Table) -> list[int]:
    """The ids of rows, sorted."""
    return sorted(rows.column("id").to_pylist())
