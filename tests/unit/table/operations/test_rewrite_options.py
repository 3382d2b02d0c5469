"""Options of rewrites: Iceberg's names and Python's, defaults, and what is refused."""

from typing import Any

import pytest

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.table.operations.rewrite_options import OPTIONS, RewriteOptions, option_name, parse_options


def parsed(kind: str = "zorder", **given: Any) -> RewriteOptions:
    return parse_options(given, kind, RewriteOptions())


def test_names_are_those_of_iceberg_or_of_python() -> None:
    given = {"rewrite-all": "true", "partial-progress.max-commits": "3", "min_input_files": 2}
    options = parse_options(given, "binpack", RewriteOptions())
    assert (options.rewrite_all, options.partial_progress_max_commits, options.min_input_files) == (True, 3, 2)
    assert option_name("partial_progress_max_failed_commits") == "partial-progress.max-failed-commits"
    assert parse_options({}, "sort", options) == options


def test_values_may_be_text_or_what_they_are() -> None:
    assert parsed(delete_ratio_threshold="0.5") == parsed(delete_ratio_threshold=0.5)
    assert parsed(rewrite_all="FALSE") == parsed(rewrite_all=False) == RewriteOptions()
    assert parsed(rewrite_job_order="BYTES_ASC").rewrite_job_order == "bytes-asc"
    assert parsed(compression_factor=2).compression_factor == 2.0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("binpack", "compression-factor"),
        ("binpack", "shuffle-partitions-per-file"),
        ("sort", "max-output-size"),
        ("position deletes", "delete-file-threshold"),
        ("position deletes", "output-spec-id"),
        ("zorder", "rewrite-al"),
        ("zorder", 7),
    ],
)
def test_options_that_a_rewrite_does_not_take_are_refused(kind: str, name: Any) -> None:
    with pytest.raises(NotFoundError, match=f"no option `{name}`"):
        parse_options({name: "1"}, kind, RewriteOptions())


def test_near_names_are_shown() -> None:
    with pytest.raises(NotFoundError) as caught:
        parsed(rewrite_al="true")
    assert "rewrite-all" in str(caught.value.hints) or "rewrite-all" in str(caught.value)


@pytest.mark.parametrize("name", sorted(OPTIONS["zorder"]))
@pytest.mark.parametrize("value", ["", "x", "-1", -1, None, [], "1e400", float("nan"), "\u0661"])
def test_every_option_refuses_what_is_no_value(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=rf"expected .* for `{option_name(name)}`"):
        parsed(**{name: value})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_file_size_bytes": 0}, "expected a whole number from 1 on for `target-file-size-bytes`, found 0"),
        ({"delete_ratio_threshold": "1.1"}, "expected a number above 0 up to 1 for `delete-ratio-threshold`"),
        ({"rewrite_job_order": "x"}, "expected none, bytes-asc, bytes-desc, files-asc or files-desc"),
        ({"min_input_files": True}, "expected a whole number"),
        ({"min_input_files": 1.5}, "expected a whole number"),
    ],
)
def test_errors_say_what_would_be_right(given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parsed(**given)


def test_the_same_option_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected option `rewrite-all` once"):
        parse_options({"rewrite-all": "true", "rewrite_all": "true"}, "sort", RewriteOptions())
    with pytest.raises(InvalidInputError, match="expected a mapping of options"):
        parse_options(["rewrite-all"], "sort", RewriteOptions())


def test_sizes_follow_the_target_unless_they_are_given() -> None:
    rules = parsed().sizes(1000)
    assert (rules.target, rules.least, rules.most) == (1000, 750, 1800)
    rules = parsed(target_file_size_bytes=100, min_file_size_bytes=0, max_file_size_bytes=101).sizes(1000)
    assert (rules.target, rules.least, rules.most) == (100, 0, 101)
    with pytest.raises(InvalidInputError, match="expected `min-file-size-bytes` below the target size 100"):
        parsed(min_file_size_bytes=100).sizes(100)
    with pytest.raises(InvalidInputError, match="expected `max-file-size-bytes` above the target size 100"):
        parsed(max_file_size_bytes=100).sizes(100)


def test_output_spec_must_be_the_tables(orders: Table) -> None:
    parsed(output_spec_id=0).check_spec(orders.metadata)
    with pytest.raises(NotFoundError, match="no partition spec 7 for `output-spec-id`: there are 0"):
        parsed(output_spec_id=7).check_spec(orders.metadata)
