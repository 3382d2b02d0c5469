"""Whole numbers as wide as the specification allows; a wider one in a file is an error at its place."""

from typing import Annotated

import msgspec

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
