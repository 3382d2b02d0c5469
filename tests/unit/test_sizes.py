"""Sizes as people read them."""

import pytest

from bergline.sizes import render_size


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1024**2 - 1, "1.00 MiB"),
        (1536 * 1024, "1.50 MiB"),
        (10 * 1024**3, "10.0 GiB"),
        (999 * 1024**4, "999 TiB"),
        (5000 * 1024**6, "5000 EiB"),
    ],
)
def test_size_has_three_digits_and_a_binary_unit(size: int, text: str) -> None:
    assert render_size(size) == text
