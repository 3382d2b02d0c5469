"""The widths of whole numbers in JSON."""

from typing import Any

import pytest

from bergline.errors import FormatError
from bergline.format.integers import Int, Long
from bergline.format.wire import decode_json


@pytest.mark.parametrize(("kind", "bits"), [(Int, 32), (Long, 64)])
def test_both_ends_are_read_and_one_more_is_refused(kind: Any, bits: int) -> None:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert decode_json(f"[{least},{most}]".encode(), list[kind], "x") == [least, most]
    for beyond in (least - 1, most + 1, 10**30):
        with pytest.raises(FormatError, match=r"at \$\[1\] in x"):
            decode_json(f"[0,{beyond}]".encode(), list[kind], "x")
