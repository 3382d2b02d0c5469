"""The options of compaction and of the rewrite of position delete files, by their names in Iceberg and in Python."""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.engine.file_groups import JobOrder, SizeRules

_SMALL, _LARGE = 0.75, 1.8
_JOB_ORDERS: Final = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")


class RewriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Iceberg's options with its defaults; None is for what follows from the table or from others."""

    target_file_size_bytes: int | None = None
    min_file_size_bytes: int | None = None
    max_file_size_bytes: int | None = None
    min_input_files: int = 5
    rewrite_all: bool = False
    max_file_group_size_bytes: int = 100 * 1024**3
    max_file_group_input_files: int | None = None
    max_concurrent_file_group_rewrites: int | None = None
    partial_progress_enabled: bool = False
    partial_progress_max_commits: int = 10
    rewrite_job_order: JobOrder = "none"
    # only of data files
    partial_progress_max_failed_commits: int | None = None
    delete_file_threshold: int | None = None
    delete_ratio_threshold: float = 0.3
    max_files_to_rewrite: int | None = None
    use_starting_sequence_number: bool = True
    remove_dangling_deletes: bool = False
    output_spec_id: int | None = None
    # only where rows are sorted
    shuffle_partitions_per_file: int = 1
    compression_factor: float = 1.0
    # only in z-order
    max_output_size: int | None = None
    var_length_contribution: int = 8

    def sizes(self, default_target: int, *, only_fewer: bool = False) -> SizeRules:
        """The rules for files of a table, whose own target size is the default."""
        target = self.target_file_size_bytes or default_target
        least = int(target * _SMALL) if self.min_file_size_bytes is None else self.min_file_size_bytes
        most = int(target * _LARGE) if self.max_file_size_bytes is None else self.max_file_size_bytes
        if least >= target:
            raise InvalidInputError(
                f"expected `min-file-size-bytes` below the target size {target}, found {least}: all new files would be "
                "too small"
            )
        if most <= target and self.max_file_size_bytes is not None:
            raise InvalidInputError(
                f"expected `max-file-size-bytes` above the target size {target}, found {most}: all new files would be "
                "too large"
            )
        return SizeRules(
            target,
            least,
            max(most, target + 1),
            self.min_input_files,
            self.rewrite_all,
            self.max_file_group_size_bytes,
            self.max_file_group_input_files,
            only_fewer,
        )

    def check_spec(self, metadata: TableMetadata) -> None:
        """NotFoundError for an output spec that the table does not have."""
        if self.output_spec_id is not None and self.output_spec_id not in metadata.specs_by_id:
            known = [str(spec_id) for spec_id in metadata.specs_by_id]
            raise NotFoundError(
                f"no partition spec {self.output_spec_id} for `output-spec-id`: there are {', '.join(known)}",
                kind="partition spec",
                name=str(self.output_spec_id),
            )


_AT_LEAST_0: Final = {"min_file_size_bytes", "delete_file_threshold", "output_spec_id"} | {
    "partial_progress_max_failed_commits"
}
_OF_DELETES: Final = frozenset(RewriteOptions.__struct_fields__[:11])
_OF_SORTING: Final = frozenset({"shuffle_partitions_per_file", "compression_factor"})
_OF_Z_ORDER: Final = frozenset({"max_output_size", "var_length_contribution"})
OPTIONS: Final = {
    "binpack": frozenset(RewriteOptions.__struct_fields__) - _OF_SORTING - _OF_Z_ORDER,
    "sort": frozenset(RewriteOptions.__struct_fields__) - _OF_Z_ORDER,
    "zorder": frozenset(RewriteOptions.__struct_fields__),
    "position deletes": _OF_DELETES,
}
"""The options that each kind of rewrite takes."""


def parse_options(given: Any, kind: str, defaults: RewriteOptions) -> RewriteOptions:
    """Options by name (`rewrite-all` or `rewrite_all`), with values as text or as they are."""
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"expected a mapping of options, found {shown(given)}")
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace("-", "_").replace(".", "_") if isinstance(key, str) else ""
        if name not in OPTIONS[kind]:
            known = [option_name(n) for n in RewriteOptions.__struct_fields__ if n in OPTIONS[kind]]
            other = f" {kind} takes none of this name" if name in RewriteOptions.__struct_fields__ else ""
            raise NotFoundError(
                f"no option `{key}`{':' if other else ''}{other}",
                kind="option",
                name=str(key),
                known=known,
                hints=[f"there are {', '.join(known)}"],
            )
        if name in values:
            raise InvalidInputError(f"expected option `{option_name(name)}` once, found it twice")
        values[name] = _parsed(name, value)
    return msgspec.structs.replace(defaults, **values)


def option_name(name: str) -> str:
    """Iceberg's name of an option."""
    return name.replace("_", "-").replace("partial-progress-", "partial-progress.")


def _parsed(name: str, value: Any) -> Any:
    field = getattr(_DEFAULTS, name)
    if isinstance(field, bool):
        return _boolean(name, value)
    if name == "rewrite_job_order":
        return _job_order(name, value)
    if isinstance(field, float):
        return _fraction(name, value)
    least = 0 if name in _AT_LEAST_0 else 1
    number = _number(value, int)
    if type(number) is not int or not least <= number < 2**63:
        raise InvalidInputError(
            f"expected a whole number from {least} on for `{option_name(name)}`, found {_text(value)}"
        )
    return number


def _boolean(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise InvalidInputError(f"expected true or false for `{option_name(name)}`, found {_text(value)}")


def _job_order(name: str, value: Any) -> str:
    text = value.lower().replace("_", "-") if isinstance(value, str) else None
    if text not in _JOB_ORDERS:
        expected = f"{', '.join(_JOB_ORDERS[:-1])} or {_JOB_ORDERS[-1]}"
        raise InvalidInputError(f"expected {expected} for `{option_name(name)}`, found {_text(value)}")
    return text


def _fraction(name: str, value: Any) -> float:
    number = _number(value, float)
    most = 1.0 if name == "delete_ratio_threshold" else math.inf
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= most or number == math.inf:
        up_to = " up to 1" if most == 1 else ""
        raise InvalidInputError(f"expected a number above 0{up_to} for `{option_name(name)}`, found {_text(value)}")
    return float(number)


def _number(value: Any, parse: type[int] | type[float]) -> Any:
    try:
        return parse(value) if isinstance(value, str) and value.isascii() else value
    except ValueError:
        return None


def _text(value: Any) -> str:
    return f"`{value[:80]}`" if isinstance(value, str) else shown(value)


_DEFAULTS: Final = RewriteOptions()
