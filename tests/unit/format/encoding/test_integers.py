"""The widths of whole numbers in JSON."""

from typing import Any

import pytest

from bergline.errors import FormatError, RefusedError
from bergline.format.encoding.integers import Int, Long, next_int, next_long
from bergline.format.encoding.wire import decode_json


@pytest.mark.parametrize(("kind", "bits"), [(Int, 32), (Long, 64)])
def test_both_ends_are_read_and_one_more_is_refused(kind: Any, bits: int) -> None:
    least, most = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    assert decode_json(f"[{least},{most}]".encode(), list[kind], "x") == [least, most]
    for beyond in (least - 1, most + 1, 10**30):
        with pytest.raises(FormatError, match=r"at \$\[1\] in x"):
            decode_json(f"[0,{beyond}]".encode(), list[kind], "x")


def test_after_the_last_number_there_is_no_other() -> None:
    assert (next_int("id", -1), next_int("id", 2**31 - 2), next_long("number", 2**63 - 2)) == (
        0,
        2**31 - 1,
        2**63 - 1,
    )
    with pytest.raises(RefusedError, match="cannot assign another spec id: 2147483647 is the largest"):
        next_int("spec id", 2**31 - 1)
    with pytest.raises(RefusedError, match="another sequence number"):
        next_long("sequence number", 2**63 - 1)
