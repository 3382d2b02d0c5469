"""Changes that cancel each other out, and update images: changed rows matched by value or identity, in bounded memory.

What does not fit into memory is split by hash into temporary files, so that rows that may match are in the same file.
Rows are equal if all values are: null equals null, NaN equals NaN, -0.0 is not 0.0.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.read.changelog import CHANGE_COLUMNS, DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from bergline.errors import InvalidInputError
from bergline.format.schema.reserved import CHANGE_ORDINAL, CHANGE_TYPE, ROW_ID
from bergline.table.scans.changelog_scan import MatchRules

MEMORY_BYTES: Final = 64 << 20
"""The most bytes of changed rows that are matched at a time."""
_MOST_FILES: Final = 128
_MOST_ROUNDS: Final = 3
_NAMES: Final = frozenset(f.name for f in CHANGE_COLUMNS)


def match_changes(
    batches: Iterable[pa.RecordBatch], rules: MatchRules, *, most_rows: int, memory: int = MEMORY_BYTES
) -> Iterator[pa.RecordBatch]:
    """The remaining changes, with update images; `most_rows` is an upper limit of the changes before matching.

    If rows are identified by row ids there is a column `_row_id`, which the result does not have.
    """
    if not rules.by_row_id:
        return _Matching(rules, memory).run(batches, most_rows)
    by_id = _Matching(rules, memory).run(batches, most_rows)
    return _Matching(MatchRules(), memory).run(_without_row_ids(by_id), most_rows)


def _without_row_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select([name for name in batch.schema.names if name != ROW_ID.name])


class _Matching:
    """One way to match rows."""

    def __init__(self, rules: MatchRules, memory: int) -> None:
        self._rules = rules
        self._memory = memory

    def run(self, batches: Iterable[pa.RecordBatch], most_rows: int, round_: int = 0) -> Iterator[pa.RecordBatch]:
        """Match in memory if all rows fit, else file by file."""
        source, kept, size, rows = iter(batches), [], 0, 0
        for batch in source:
            kept.append(batch)
            size += batch.nbytes
            rows += batch.num_rows
            if size > self._memory and round_ < _MOST_ROUNDS:
                files = max(2, min(_MOST_FILES, -(-size * max(most_rows, rows) // (rows * self._memory))))
                yield from self._by_files(chain(kept, source), files, round_)
                return
        if kept:
            yield from _nonempty(self._matched(pa.Table.from_batches(kept)))

    def _by_files(self, batches: Iterable[pa.RecordBatch], files: int, round_: int) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory(prefix="bergline-changes-") as directory:
            paths = [Path(directory) / str(number) for number in range(files)]
            counts = [0] * files
            with contextlib.ExitStack() as stack:
                writers: list[pa.RecordBatchWriter | None] = [None] * files
                for batch in batches:
                    if self._passes(batch):
                        yield batch
                        continue
                    numbers = _hashes(self._hashed(pa.Table.from_batches([batch])), round_) % files
                    for number in numbers.unique().to_list():
                        part = batch.filter(pa.array(numbers == number))
                        writer = writers[number]
                        if writer is None:
                            sink = stack.enter_context(pa.OSFile(str(paths[number]), "wb"))
                            writer = writers[number] = stack.enter_context(pa.ipc.new_stream(sink, batch.schema))
                        writer.write_batch(part)
                        counts[number] += part.num_rows
            for path, count in zip(paths, counts, strict=True):
                if count:
                    with pa.OSFile(str(path)) as stream, pa.ipc.open_stream(stream) as reader:
                        yield from self.run(reader, count, round_ + 1)
                    path.unlink()

    @staticmethod
    def _passes(batch: pa.RecordBatch) -> bool:
        """Whether all rows are update images already."""
        return bool(pc.all(pc.is_in(batch.column(CHANGE_TYPE.name), pa.array([UPDATE_BEFORE, UPDATE_AFTER]))).as_py())

    def _hashed(self, rows: pa.Table) -> list[pa.Array]:
        """Columns that are equal in all rows that may match."""
        names = self._rules.identifiers or ((ROW_ID.name,) if self._rules.by_row_id else ())
        return _comparable_columns(rows.select(names or _row_columns(rows)))

    def _matched(self, rows: pa.Table) -> pa.Table:
        is_image = pc.is_in(rows.column(CHANGE_TYPE.name), pa.array([UPDATE_BEFORE, UPDATE_AFTER]))
        images, rows = rows.filter(is_image), rows.filter(pc.invert(is_image))
        if self._rules.by_row_id:
            rows = _paired(rows, (ROW_ID.name,), by_row_id=True)
        else:
            rows = _net(rows) if self._rules.net else _without_carry_overs(rows)
            if self._rules.identifiers:
                rows = _paired(rows, self._rules.identifiers, across=self._rules.net)
        return pa.concat_tables([images, rows])


def _without_carry_overs(rows: pa.Table) -> pa.Table:
    """Drop rows that one snapshot both deletes and inserts: they were only copied."""
    frame = _signed(rows).with_columns(code=_codes(_comparable_columns(rows.select(_row_columns(rows)))))
    group = ["code", "ordinal"]
    # of equal rows, as many of the more frequent kind remain as it has more than the other: `place` counts within a
    # kind, so those up to the difference are kept
    left = frame.with_columns(
        total=pl.col("sign").sum().over(group), place=pl.col("row").rank("ordinal").over([*group, "sign"])
    ).filter(pl.col("sign") * pl.col("total") >= pl.col("place"))
    return rows.take(left.sort("row")["row"].to_arrow())


def _net(rows: pa.Table) -> pa.Table:
    """The net change of equal rows, after inserts and deletes have cancelled each other out.

    As in the official runtime, all remaining changes of equal rows have the ordinal and snapshot of the first one.
    """
    frame = _signed(rows).with_columns(code=_codes(_comparable_columns(rows.select(_row_columns(rows)))))
    frame = frame.sort("code", "ordinal", "sign", "row").with_columns(
        so_far=pl.col("sign").cum_sum().over("code"), total=pl.col("sign").sum().over("code")
    )
    # where the running total equals the sign of the row, the row starts a new surplus of its kind. The last such row of
    # each code is the change that no later one cancelled.
    starts = frame.filter((pl.col("so_far") == pl.col("sign")) & (pl.col("total") != 0))
    last = starts.group_by("code", maintain_order=True).last().sort("ordinal", "row")
    repeated = last.select(pl.col("row").repeat_by(pl.col("total").abs()).explode())["row"]
    return rows.take(repeated.cast(pl.Int64).to_arrow())


def _paired(rows: pa.Table, identifiers: Sequence[str], *, across: bool = False, by_row_id: bool = False) -> pa.Table:
    """Pair a deleted and an inserted row of one identity as update images, within one snapshot or `across` them.

    By row id, equal images are dropped, and ids that are null or not unique identify nothing.
    """
    group = ["identity"] if across else ["identity", "ordinal"]
    frame = _signed(rows).with_columns(identity=_codes(_comparable_columns(rows.select(identifiers))))
    if by_row_id:
        known = pl.Series(pc.is_valid(rows.column(ROW_ID.name)).combine_chunks())
        frame = frame.with_columns(
            # A row without an id gets an identity that no other row has, so that it pairs with nothing
            identity=pl.when(known).then(pl.col("identity")).otherwise(-1 - pl.col("row").cast(pl.Int64)),
            code=_codes(_comparable_columns(rows.select(_row_columns(rows)))),
        )
    deleted, inserted = pl.col("sign") < 0, pl.col("sign") > 0
    frame = frame.with_columns(
        deletes=deleted.sum().over(group),
        inserts=inserted.sum().over(group),
        place=pl.col("row").rank("ordinal").over([*group, "sign"]),
    )
    if by_row_id:
        is_pair = (pl.col("deletes") == 1) & (pl.col("inserts") == 1)
        equal = is_pair & (pl.col("code").n_unique().over(group) == 1)
        frame = frame.with_columns(is_pair=is_pair).filter(~equal)
    else:
        _check_unique(rows, frame, identifiers)
        frame = frame.with_columns(is_pair=(pl.col("deletes") == 1) & (pl.col("inserts") >= 1) & (pl.col("place") == 1))
    word = (
        pl.when(pl.col("is_pair") & deleted)
        .then(pl.lit(UPDATE_BEFORE))
        .when(pl.col("is_pair"))
        .then(pl.lit(UPDATE_AFTER))
        .when(deleted)
        .then(pl.lit(DELETE))
        .otherwise(pl.lit(INSERT))
    )
    first = pl.col("ordinal").min().over("identity") if across else pl.col("ordinal")
    frame = frame.with_columns(word=word, first=first).sort("first", "identity", "sign", "row")
    place = rows.column_names.index(CHANGE_TYPE.name)
    words = frame["word"].to_arrow().cast(rows.schema.field(place).type)
    return rows.take(frame["row"].to_arrow()).set_column(place, rows.schema.field(place), words)


def _check_unique(rows: pa.Table, frame: pl.DataFrame, identifiers: Sequence[str]) -> None:
    several = frame.filter((pl.col("deletes") > 1) & (pl.col("inserts") > 0))
    if several.height:
        found = rows.slice(int(several["row"][0]), 1).select(identifiers).to_pylist()[0]
        values = ", ".join(f"{name} = {value!r}" for name, value in found.items())
        names = ", ".join(f"`{name}`" for name in identifiers)
        raise InvalidInputError(f"expected rows that {names} identify to compute updates, found several with {values}")


def _signed(rows: pa.Table) -> pl.DataFrame:
    """The code of each row, the ordinal of its change, and 1 for an insert or -1 for a delete."""
    ordinals = rows.column(CHANGE_ORDINAL.name).combine_chunks()
    inserted = pc.equal(rows.column(CHANGE_TYPE.name), INSERT).combine_chunks()
    return pl.DataFrame(
        {
            "row": pl.int_range(rows.num_rows, dtype=pl.Int64, eager=True),
            "ordinal": pl.Series(pc.fill_null(ordinals, -1)),
            "sign": pl.Series(inserted).cast(pl.Int64) * 2 - 1,
        }
    )


def _row_columns(rows: pa.Table) -> list[str]:
    return [n for n in rows.column_names if n not in _NAMES and n != ROW_ID.name]


def _codes(columns: Sequence[pa.Array]) -> pl.Series:
    """A code for each row, the same for equal rows."""
    codes: pa.Array | None = None
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        own = encoded.indices.cast(pa.int64())
        if codes is None:
            codes = own
            continue
        # each pair of codes becomes one number, and these are numbered anew: so the codes stay below the number of
        # rows, and their product fits 64 bits
        both = pc.add(pc.multiply(codes, pa.scalar(len(encoded.dictionary), pa.int64())), own)
        codes = both.dictionary_encode().indices.cast(pa.int64())
    return pl.Series(codes)


def _hashes(columns: Sequence[pa.Array], seed: int) -> pl.Series:
    """A hash of each row, by the columns that polars hashes consistently with Arrow's comparison."""
    simple = [c for c in columns if _is_simple(c.type)] or [c.cast(pa.string()) for c in columns]
    return pl.DataFrame({str(n): pl.Series(c) for n, c in enumerate(simple)}).hash_rows(seed)


def _is_simple(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_boolean(kind)
    )


def _comparable_columns(rows: pa.Table) -> list[pa.Array]:
    """The columns in flat types that Arrow compares bit by bit; nested values as text."""
    return [_comparable(rows.column(i).combine_chunks()) for i in range(rows.num_columns)]


def _comparable(column: pa.Array) -> pa.Array:
    kind = column.type
    if isinstance(column, pa.ExtensionArray):
        return column.storage.cast(pa.binary())
    if pa.types.is_nested(kind):
        plain = column.cast(_plain_field(pa.field("", kind)).type)
        return pa.array([None if value is None else str(value) for value in plain.to_pylist()], pa.string())
    if pa.types.is_null(kind):
        return column.cast(pa.bool_())
    if pa.types.is_floating(kind):
        bits = pa.int32() if pa.types.is_float32(kind) else pa.int64()
        # as bits, -0.0 differs from 0.0, as it must; all NaNs get the same bits first
        one_nan = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), kind), column)
        return one_nan.view(bits)
    if pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    return column.cast(_plain_field(pa.field("", kind)).type)


def _plain_field(field: pa.Field) -> pa.Field:
    """The field with numbers in place of dates and times, whose range in Arrow exceeds Python's."""
    kind = field.type
    if pa.types.is_temporal(kind):
        return field.with_type(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_plain_field(f) for f in kind]))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_plain_field(kind.value_field)))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field)))
    return field


def _nonempty(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    return (batch for batch in rows.to_batches() if batch.num_rows)
