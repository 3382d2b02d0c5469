"""Theta sketches of Apache DataSketches in their compact form: how many distinct values a column has, about.

A sketch keeps the smallest hashes of the values. Up to 4,096 distinct values it is exact, and byte for byte what
Java writes; above, the relative error is about 1.6 %, and it does not depend on the order of the rows.
"""

import heapq
import struct
from collections.abc import Iterable

import mmh3
import msgspec

from bergline.errors import FormatError, UnsupportedError

NOMINAL_ENTRIES = 4096
"""How many hashes a sketch keeps at most; the default of DataSketches."""

_SEED = 9001
_SEED_HASH = 0x93CC
_LARGEST_THETA = 2**63 - 1
_UNSIGNED = 2**64 - 1
_SERIAL_VERSION, _COMPACT_FAMILY = 3, 3
_BIG_ENDIAN, _READ_ONLY, _IS_EMPTY, _COMPACT, _ORDERED, _SINGLE_ITEM = 1, 2, 4, 8, 16, 32
_PREAMBLE = struct.Struct("<BBBBBBH")
_COUNT = struct.Struct("<if")
_LONG = 8


class ThetaSketch(msgspec.Struct, frozen=True):
    """The smallest hashes of values, all below theta, in ascending order."""

    hashes: tuple[int, ...] = ()
    theta: int = _LARGEST_THETA

    @property
    def estimate(self) -> float:
        """The estimated number of distinct values; exact while theta is at its largest."""
        return len(self.hashes) * (_LARGEST_THETA / self.theta)

    def to_bytes(self) -> bytes:
        """The compact form, ordered, as Java writes it."""
        count, flags = len(self.hashes), _READ_ONLY | _COMPACT | _ORDERED
        is_exact = self.theta == _LARGEST_THETA
        if not count and is_exact:
            return _PREAMBLE.pack(1, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags | _IS_EMPTY, 0)
        hashes = struct.pack(f"<{count}q", *self.hashes)
        if count == 1 and is_exact:
            return _preamble(1, flags | _SINGLE_ITEM) + hashes
        if is_exact:
            return _preamble(2, flags) + _COUNT.pack(count, 1.0) + hashes
        return _preamble(3, flags) + _COUNT.pack(count, 1.0) + struct.pack("<q", self.theta) + hashes


class ThetaSketchBuilder:
    """Takes values in the binary single-value encoding; as in Java, values without any bytes are not counted."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()
        self._theta = _LARGEST_THETA

    def add(self, values: Iterable[bytes]) -> None:
        """Add values."""
        hash64 = mmh3.hash64
        found = {(hash64(value, _SEED)[0] & _UNSIGNED) >> 1 for value in values if value}
        theta = self._theta
        self._hashes |= found if theta == _LARGEST_THETA else {h for h in found if h < theta}
        self._hashes.discard(0)
        if len(self._hashes) > 2 * NOMINAL_ENTRIES:
            self._trim()

    def build(self) -> ThetaSketch:
        """The sketch of all values so far."""
        if len(self._hashes) > NOMINAL_ENTRIES:
            self._trim()
        return ThetaSketch(tuple(sorted(self._hashes)), self._theta)

    def _trim(self) -> None:
        smallest = heapq.nsmallest(NOMINAL_ENTRIES + 1, self._hashes)
        self._theta = smallest.pop()
        self._hashes = set(smallest)


def join_sketches(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """The sketch of the values of several sketches together."""
    sketches = list(sketches)
    theta = min((s.theta for s in sketches), default=_LARGEST_THETA)
    hashes = sorted({h for s in sketches for h in s.hashes if h < theta})
    if len(hashes) > NOMINAL_ENTRIES:
        theta = hashes[NOMINAL_ENTRIES]
        del hashes[NOMINAL_ENTRIES:]
    return ThetaSketch(tuple(hashes), theta)


def parse_theta_sketch(data: bytes, source: str) -> ThetaSketch:
    """Parse a compact sketch with the default seed, ordered or not."""
    if len(data) < _PREAMBLE.size:
        raise FormatError(f"expected a theta sketch, found {len(data)} bytes in {source}")
    longs, version, family, _, _, flags, seed_hash = _PREAMBLE.unpack_from(data)
    longs &= 0x3F
    if version != _SERIAL_VERSION or family != _COMPACT_FAMILY or not flags & _COMPACT or flags & _BIG_ENDIAN:
        raise UnsupportedError(
            f"expected a compact theta sketch of serial version {_SERIAL_VERSION}, "
            f"found family {family} of version {version} in {source}"
        )
    if flags & _IS_EMPTY:
        return ThetaSketch()
    if seed_hash != _SEED_HASH:
        raise UnsupportedError(f"expected a theta sketch with seed {_SEED}, found another seed in {source}")
    count, theta = 1, _LARGEST_THETA
    try:
        if longs > 1:
            count = _COUNT.unpack_from(data, _LONG)[0]
        if longs > 2:  # noqa: PLR2004
            (theta,) = struct.unpack_from("<q", data, 2 * _LONG)
        if count < 0 or not 0 < theta <= _LARGEST_THETA or not 1 <= longs <= 3:  # noqa: PLR2004
            raise FormatError(f"expected a theta sketch, found {count} hashes below {theta} in {source}")
        hashes = struct.unpack_from(f"<{count}q", data, longs * _LONG)
    except struct.error as error:
        raise FormatError(f"expected a theta sketch, found {error} in {source}") from error
    return ThetaSketch(tuple(sorted(hashes)), theta)


def _preamble(longs: int, flags: int) -> bytes:
    return _PREAMBLE.pack(longs, _SERIAL_VERSION, _COMPACT_FAMILY, 0, 0, flags, _SEED_HASH)
