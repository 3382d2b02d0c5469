"""Digests of metadata files."""

import hashlib

from bergline.catalog.metadata_digests import KeptDigests, digest_of
from bergline.catalog.pointer.memory import MemoryPointerStore


def test_digest_is_of_the_bytes_in_the_store() -> None:
    found = digest_of(b"{}")
    assert (found.size, found.sha256) == (2, hashlib.sha256(b"{}").hexdigest())
    assert found != digest_of(b"{ }")
    assert str(found) == f"2 bytes with SHA-256 {found.sha256[:16]}…"


def test_stores_without_a_database_keep_none() -> None:
    assert not isinstance(MemoryPointerStore(), KeptDigests)
