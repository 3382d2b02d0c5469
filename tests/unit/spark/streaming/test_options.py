"""The options of streaming reads."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.spark.streaming.options import STREAM_OPTIONS, StreamOptions, parse_stream_options
from bergline.table.scans.stream_scan import StreamRules


def test_every_option_has_a_meaning() -> None:
    given = {
        "branch": "b",
        "stream-from-timestamp": "-5",
        "streaming-max-files-per-micro-batch": "2",
        "streaming-max-rows-per-micro-batch": "3",
        "streaming-skip-overwrite-snapshots": "TRUE",
        "streaming-skip-delete-snapshots": "true",
    }
    assert set(given) == set(STREAM_OPTIONS)
    rules = StreamRules(-5, 2, 3, skip_overwrites=True, skip_deletes=True)
    assert parse_stream_options(given) == StreamOptions("b", rules)
    assert parse_stream_options({}) == StreamOptions(None, StreamRules())


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("stream-from-timestamp", "2026-01-01", "expected milliseconds since 1970 for option `stream-from-timestamp`"),
        ("stream-from-timestamp", "", "expected milliseconds since 1970"),
        ("streaming-max-files-per-micro-batch", "0", "expected a whole number from 1 on"),
        ("streaming-max-rows-per-micro-batch", "1.5", "expected a whole number from 1 on"),
        ("streaming-skip-delete-snapshots", "yes", "expected true or false for option"),
    ],
)
def test_values_that_do_not_fit_are_refused(key: str, text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_stream_options({key: text})


def test_what_is_not_understood_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"expected one of the options branch, .* found `startingversion`"):
        parse_stream_options({"startingversion": "1"})
