"""Whether two locations are the same file: equal after normalizing, or too similar to decide."""

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from bergline.io.local import link_target, real_directory
from bergline.io.locations import normalized, scheme_of

_SLASHES = re.compile("/{2,}")


class NormalizedPath(NamedTuple):
    """Two spellings of a location: `exact` is the same for all names of a file, `loose` for all possible ones.

    Locations that differ only in scheme, authority, percent-encoding or Unicode normalization may be the same file.
    """

    exact: str
    loose: str

    @property
    def prefix(self) -> str:
        """Scheme and authority."""
        return "/".join(self.exact.split("/", 3)[:3])


class PathRules:
    """Normalizes locations; the mappings say which schemes and authorities are equal, as in `{"s3a,s3n": "s3"}`."""

    def __init__(self, equal_schemes: Mapping[str, str], equal_authorities: Mapping[str, str]) -> None:
        self._schemes = _flat(equal_schemes)
        self._authorities = _flat(equal_authorities)
        self._real: dict[str, str] = {}

    def spell(self, location: str) -> NormalizedPath:
        """The spellings of a file's location; on a disk, links are followed, both of its directory and of the file."""
        exact, path = self._exact(location, whole=True)
        return NormalizedPath(exact, unicodedata.normalize("NFC", unquote(path)))

    def exact(self, location: str) -> str:
        """Only the exact spelling."""
        return self._exact(location, whole=True)[0]

    def below(self, directory: str) -> str:
        """The prefix of the exact spelling of everything below a directory."""
        return self._exact(f"{directory.rstrip('/')}/x", whole=False)[0].removesuffix("x")

    def loosely_below(self, directory: str) -> str:
        """The prefix of the loose spelling of everything below a directory."""
        path = self.below(directory).split("/", 3)[3]
        return unicodedata.normalize("NFC", unquote(f"/{path}"))

    def _exact(self, location: str, *, whole: bool) -> tuple[str, str]:
        """The exact spelling, and the path in it; a file that is a link is followed if the `whole` path counts."""
        scheme, _, rest = normalized(location).partition(":")
        authority, _, path = rest.removeprefix("//").partition("/") if rest.startswith("//") else ("", "", rest)
        path = _SLASHES.sub("/", f"/{path}")
        if scheme == "file":
            directory, _, name = path.rpartition("/")
            path = f"{self._real_directory(directory)}/{name}"
            path = link_target(path) if whole else path
        scheme = self._schemes.get(scheme_of(location), self._schemes.get(scheme, scheme))
        authority = self._authorities.get(authority, authority).lower()
        return f"{scheme}://{authority}{path}", path

    def _real_directory(self, directory: str) -> str:
        if directory not in self._real:
            self._real[directory] = real_directory(directory or "/").rstrip("/")
        return self._real[directory]


def _flat(names: Mapping[str, str]) -> dict[str, str]:
    return {name.strip(): value.strip() for several, value in names.items() for name in several.split(",")}
