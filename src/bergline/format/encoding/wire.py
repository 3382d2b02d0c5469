"""JSON decoding and encoding for all values of the format, with errors that name the JSON path."""

import re
from typing import Any, TypeVar

import msgspec

from bergline.errors import FormatError, InvalidInputError
from bergline.format.encoding.value_class import ValueClass
from bergline.json_decoders import JsonDecoders

Decoded = TypeVar("Decoded")
_LONGEST = 2000
_PLACE = re.compile(r" - at `(?P<place>[^`]*)`$")


def decode_json(data: bytes, as_type: type[Decoded], source: str) -> Decoded:
    """Decode a value; FormatError with the JSON path and the source."""
    try:
        decoder: msgspec.json.Decoder[Decoded] = _DECODERS.of(as_type)
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{describe_decode_error(error)} in {source}") from error


def encode_json(value: Any) -> bytes:
    """Encode a value; InvalidInputError for text that UTF-8 cannot encode."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"expected text without lone surrogates, found {error.object!r:.80}") from error


def describe_decode_error(error: Exception) -> str:
    """Reword a msgspec message: expected, found, path."""
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, found the byte 0x{error.object[error.start]:02x} in a text at $"
    text = str(error) or type(error).__name__
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
    place = match["place"] if (match := _PLACE.search(text)) else "$"
    text = _PLACE.sub("", text).replace(", got ", ", found ")
    start = text[:1] if text[1:2].isupper() else text[:1].lower()
    return f"{start}{text[1:]} at {place}"


def _decode_hook(as_type: Any, wire: Any) -> Any:
    if isinstance(as_type, type) and issubclass(as_type, ValueClass):
        return as_type.from_json(wire)
    raise NotImplementedError(as_type)


def _encode_hook(value: Any) -> Any:
    if isinstance(value, ValueClass):
        return value.to_json()
    raise NotImplementedError(type(value))


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook)
_DECODERS = JsonDecoders(_decode_hook)
