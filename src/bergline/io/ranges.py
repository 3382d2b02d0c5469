"""The one check on ranges of bytes: they come from metadata, so a wrong one is a file that breaks the specification."""

from bergline.errors import FormatError


def check_range(location: str, offset: int, length: int, size: int) -> None:
    """FormatError unless the range lies inside an object of `size` bytes."""
    if offset < 0 or length < 0 or offset + length > size:
        raise FormatError(f"expected {length} bytes from byte {offset}, found {size} bytes in all in {location}")
