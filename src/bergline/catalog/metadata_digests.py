"""Digests of metadata files, by which a catalog notices that a file was replaced."""

import hashlib
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import msgspec


class MetadataDigest(msgspec.Struct, frozen=True):
    """The size and the SHA-256 of a metadata file, as it lies in the store."""

    size: int
    sha256: str

    def __str__(self) -> str:
        return f"{self.size:,} bytes with SHA-256 {self.sha256[:16]}…"


def digest_of(data: bytes) -> MetadataDigest:
    """The digest of the bytes of a file."""
    return MetadataDigest(len(data), hashlib.sha256(data).hexdigest())


class MetadataDigests(Protocol):
    """The digests that a catalog keeps beside its pointers."""

    noticed: Callable[[str, str, str], None] | None
    """Called for a file that is another one, with whose it is, its location, and what is wrong."""

    def remember(self, location: str, data: bytes) -> None:
        """Remember the digest of a file that this process wrote, for the pointer that is moved to it."""
        ...

    def check(self, location: str, data: bytes) -> None:
        """MetadataChangedError if the file of a pointer is not the one that was written; remembers new files."""
        ...


@runtime_checkable
class KeptDigests(Protocol):
    """For stores that keep digests."""

    digests: MetadataDigests
