"""Branches, tags, commits, merges and expiry in any order against a plain model: every ref reads what was done to it.

`BERGLINE_EXAMPLES=200 pytest tests/stateful/test_refs.py` runs longer, with other examples each time.
"""

import pytest

from support.fixtures.catalog_backends import MemoryBackend
from support.models.refs_machine import LONG, ReferencesMachine, check_machine


@pytest.mark.timeout(0 if LONG else 300)
def test_every_ref_reads_what_was_done_to_it() -> None:
    check_machine(ReferencesMachine, MemoryBackend, 20, 30)
