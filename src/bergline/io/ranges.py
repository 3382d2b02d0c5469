"""Checks on bytes that metadata names: a range outside its file, or a file beyond all sizes, breaks the format."""

from bergline.errors import FormatError


def check_range(location: str, offset: int, length: int, size: int) -> None:
    """FormatError unless the range lies inside an object of `size` bytes."""
    if offset < 0 or length < 0 or offset + length > size:
        raise FormatError(f"expected {length} bytes from byte {offset}, found {size} bytes in all in {location}")


def check_size(location: str, size: int, most: int | None) -> None:
    """FormatError for an object of more bytes than are to be read."""
    if most is not None and size > most:
        raise FormatError(f"expected at most {most:,} bytes, found {size:,} in {location}")
