"""An Avro encoder: a schema is compiled to a function once, which then encodes record after record.

Records and key-value pairs are tuples; dictionaries are Iceberg's maps with integer keys.
"""

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from bergline.format.encoding.avro_container import container_header, encode_long
from bergline.format.types.single_values import unscaled

Encode = Callable[[Any], bytes]
_SMALL = tuple(encode_long(n) for n in range(4096))
_BLOCK_BYTES = 64 * 1024
_MOST_KEPT_BYTES = 16 * 1024
_MOST_KEPT_BLOCKS = 1024
_SYNC_LENGTH = 16


def encoder(schema: Any) -> Encode:
    """Compile an Avro schema to a function that encodes its values."""
    match schema:
        case ["null", other]:
            return _optional(encoder(other))
        case {"type": "record", "fields": fields}:
            return _record([encoder(f["type"]) for f in fields])
        case {"type": "array", "logicalType": "map", "items": {"fields": [key, value]}}:
            return _mapping(encoder(key["type"]), encoder(value["type"]))
        case {"type": "array", "items": items}:
            return _array(encoder(items))
        case {"type": "fixed", "logicalType": "decimal", "size": size, "scale": scale}:
            return lambda value: unscaled(value, scale).to_bytes(size, "big", signed=True)
        case {"type": "fixed", "size": size}:
            return _fixed(size)
        case {"type": str(kind)} | str(kind):
            return _PRIMITIVES[kind]
    raise NotImplementedError(schema)


def render_container(schema: Any, metadata: Mapping[str, str], records: Iterable[bytes]) -> bytes:
    """An Avro file of encoded records."""
    (only,) = render_containers(schema, metadata, records, None)
    return only[0]


def render_blocks(schema: Any, metadata: Mapping[str, str], blocks: Iterable[Sequence[bytes]]) -> bytes:
    """An Avro file of encoded records, with a block for each sequence of them; recently written blocks are cached."""
    header = {key: value.encode() for key, value in metadata.items()}
    return _join({**_own(schema), **header}, [(len(records), _known_block(b"".join(records))) for records in blocks])


def render_containers(
    schema: Any,
    metadata: Mapping[str, str],
    records: Iterable[bytes],
    target_size: int | None,
    about: Callable[[int, int], Mapping[str, str]] = lambda _, __: {},
) -> Iterator[tuple[bytes, int]]:
    """Avro files of encoded records with their counts; a new file starts when the target size is reached.

    There is always at least one file, even without records. `about` returns additional header metadata for a file,
    given the index of its first record and its record count.
    """
    own = _own(schema)
    blocks: list[tuple[int, bytes]] = []
    start = count = size = written = 0

    def joined() -> bytes:
        header = {key: value.encode() for key, value in {**metadata, **about(start, count)}.items()}
        return _join({**own, **header}, blocks)

    for number, payload in _blocks(records):
        if target_size is not None and blocks and size >= target_size:
            yield joined(), count
            start, blocks, count, size, written = start + count, [], 0, 0, written + 1
        blocks.append((number, payload))
        count, size = count + number, size + len(payload)
    if blocks or not written:
        yield joined(), count


def _blocks(records: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    waiting: list[bytes] = []
    size = 0
    for record in records:
        waiting.append(record)
        size += len(record)
        if size >= _BLOCK_BYTES:
            yield len(waiting), _deflate(b"".join(waiting))
            waiting, size = [], 0
    if waiting:
        yield len(waiting), _deflate(b"".join(waiting))


def _own(schema: Any) -> dict[str, bytes]:
    return {"avro.schema": msgspec.json.encode(schema), "avro.codec": b"deflate"}


def _known_block(data: bytes) -> bytes:
    return _deflate_once(data) if len(data) <= _MOST_KEPT_BYTES else _deflate(data)


@lru_cache(maxsize=_MOST_KEPT_BLOCKS)
def _deflate_once(data: bytes) -> bytes:
    return _deflate(data)


def _deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def _join(metadata: dict[str, bytes], blocks: Sequence[tuple[int, bytes]]) -> bytes:
    # the sync marker only has to be unlikely inside blocks; derived from the content, it needs no randomness
    digest = hashlib.blake2b(digest_size=_SYNC_LENGTH)
    for _, payload in blocks:
        digest.update(payload)
    sync = digest.digest()
    parts = [container_header(metadata, sync)]
    for number, payload in blocks:
        parts += [encode_long(number), encode_long(len(payload)), payload, sync]
    return b"".join(parts)


def _long(value: int) -> bytes:
    if 0 <= value < 4096:  # noqa: PLR2004  (the length of _SMALL)
        return _SMALL[value]
    if not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value}, which is beyond 64 bits")
    return encode_long(value)


def _int(value: int) -> bytes:
    if not -(2**31) <= value < 2**31:
        raise OverflowError(f"{value}, which is beyond 32 bits")
    return _long(value)


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _fixed(size: int) -> Encode:
    def encode_fixed(value: bytes | UUID) -> bytes:
        data = value.bytes if isinstance(value, UUID) else bytes(value)
        if len(data) != size:
            raise ValueError(f"{len(data)} bytes instead of {size}")
        return data

    return encode_fixed


def _null(value: Any) -> bytes:
    if value is not None:
        raise ValueError(f"expected null, found {value!r}")
    return b""


def _string(value: str) -> bytes:
    data = value.encode()
    return _long(len(data)) + data


_PRIMITIVES: dict[str, Encode] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    "int": _int,
    "long": _long,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "bytes": _bytes,
    "string": _string,
    "null": _null,
}


def _optional(encode: Encode) -> Encode:
    return lambda value: b"\x00" if value is None else b"\x02" + encode(value)


def _record(fields: Sequence[Encode]) -> Encode:
    def encode_record(values: Sequence[Any]) -> bytes:
        return b"".join([encode(value) for encode, value in zip(fields, values, strict=True)])

    return encode_record


def _array(items: Encode) -> Encode:
    def encode_array(values: Sequence[Any]) -> bytes:
        return b"".join([_long(len(values)), *map(items, values), b"\x00"]) if values else b"\x00"

    return encode_array


def _mapping(key: Encode, value: Encode) -> Encode:
    def encode_mapping(pairs: Mapping[int, Any]) -> bytes:
        if not pairs:
            return b"\x00"
        return b"".join([_long(len(pairs)), *[key(k) + value(v) for k, v in pairs.items()], b"\x00"])

    return encode_mapping
