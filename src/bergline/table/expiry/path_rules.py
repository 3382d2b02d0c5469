"""When two locations are one file: equal after normalizing, or so alike that it cannot be decided."""

import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from bergline.io.local import link_target, real_directory
from bergline.io.locations import normalized, scheme_of

_SLASHES = re.compile("/{2,}")


class NormalizedPath(NamedTuple):
    """Two texts for a location: `exact` is the same for all names of a file, `loose` for all that may be one.

    What differs in nothing but scheme, authority, percent-encoding or the form of accents may be one.
    """

    exact: str
    loose: str

    @property
    def prefix(self) -> str:
        """Scheme and authority."""
        return "/".join(self.exact.split("/", 3)[:3])


class PathRules:
    """Spells locations; the mappings say which schemes and authorities are equal, as in `{"s3a,s3n": "s3"}`."""

    def __init__(self, equal_schemes: Mapping[str, str], equal_authorities: Mapping[str, str]) -> None:
        self._schemes = _flat(equal_schemes)
        self._authorities = _flat(equal_authorities)
        self._real: dict[str, str] = {}

    def spell(self, location: str) -> NormalizedPath:
        """The spelling of a file's location; on a disk, links are followed, of its directory and its own."""
        exact, path = self._exact(location, whole=True)
        return NormalizedPath(exact, unicodedata.normalize("NFC", unquote(path)))

    def exact(self, location: str) -> str:
        """The exact spelling alone."""
        return self._exact(location, whole=True)[0]

    def below(self, directory: str) -> str:
        """What the exact spelling of everything below a directory begins with."""
        return self._exact(f"{directory.rstrip('/')}/x", whole=False)[0].removesuffix("x")

    def loosely_below(self, directory: str) -> str:
        """The same of the loose spelling."""
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
