"""Keys by which secrets are encrypted in a catalog's database: the first one encrypts, all of them decrypt.

An encrypted secret is a Fernet token. Secrets that were stored before there was a key are read as plain text.
"""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bergline.errors import InvalidInputError, RefusedError, StorageError, UnsupportedError
from bergline.extras import install_hint
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from cryptography import fernet
else:
    fernet = LazyModule("cryptography.fernet")

KEY_VARIABLE = "BERGLINE_SECRETS_KEY"
_FERNET = "gAAAAA"  # the version and the first bytes of the time of a token, in base64
_KEY_BYTES = 32
_MAKE = "`openssl rand -base64 32` makes a key"


class SecretKeys:
    """Encrypts and decrypts; without keys, texts stay as they are."""

    def __init__(self, keys: Sequence[str] = (), *, file: str | None = None) -> None:
        decoded = [_decoded(key, number) for number, key in enumerate(keys, 1)]
        self.file = file
        """Where the keys were read from, if not from the environment."""
        try:
            self._fernets = [fernet.Fernet(base64.urlsafe_b64encode(key)) for key in decoded]
        except ModuleNotFoundError as error:
            raise UnsupportedError(
                "cannot encrypt without the server's parts", hints=[install_hint("server")]
            ) from error

    def __repr__(self) -> str:
        return f"SecretKeys({len(self._fernets)} keys)"

    def __bool__(self) -> bool:
        return bool(self._fernets)

    def encrypt(self, text: str) -> str:
        """What is stored for a text."""
        return self._fernets[0].encrypt(text.encode()).decode() if self._fernets else text

    def decrypt(self, stored: str) -> str:
        """The text; RefusedError if none of the keys encrypted it."""
        if not is_encrypted(stored):
            return stored
        for key in self._fernets:
            if (found := _decrypted(key, stored)) is not None:
                return found
        raise RefusedError(
            "its secret cannot be decrypted: expected the key that encrypted it, found "
            + ("others" if self._fernets else "none"),
            hints=[f"add it after the others, in {KEY_VARIABLE} or --secrets-key-file; or create a new webhook"],
        )

    def can_decrypt(self, stored: str) -> bool:
        """Whether one of the keys encrypted it."""
        return any(_decrypted(key, stored) is not None for key in self._fernets)

    def is_newest(self, stored: str) -> bool:
        """Whether the first key encrypted it."""
        return any(_decrypted(key, stored) is not None for key in self._fernets[:1])


def _decrypted(key: "fernet.Fernet", stored: str) -> str | None:
    try:
        return key.decrypt(stored.encode()).decode()
    except fernet.InvalidToken:
        return None


def is_encrypted(stored: str) -> bool:
    """Whether a text was encrypted by some key."""
    return stored.startswith(_FERNET)


def load_keys(file: str | None, environment: Mapping[str, str]) -> SecretKeys:
    """The keys of a file, one in each line, or of the environment, with commas or spaces between them."""
    given = environment.get(KEY_VARIABLE, "").replace(",", " ").split()
    if file is None:
        return SecretKeys(given)
    if given:
        raise InvalidInputError(f"expected keys in {KEY_VARIABLE} or in --secrets-key-file, found both")
    path = os.path.abspath(file)
    try:
        with open(path, encoding="ascii") as lines:
            keys = lines.read().split()
    except UnicodeDecodeError:
        raise InvalidInputError(f"expected keys in base64, found another file at `{path}`", hints=[_MAKE]) from None
    except OSError as error:
        raise StorageError(f"cannot read the keys in `{path}`: {error.strerror or error}") from error
    if not keys:
        raise InvalidInputError(f"expected a key in `{path}`, found none", hints=[_MAKE])
    return SecretKeys(keys, file=path)


def _decoded(key: str, number: int) -> bytes:
    """The bytes of a key, in either alphabet of base64; the key itself is in no message."""
    try:
        found = base64.b64decode(key.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != _KEY_BYTES:
        raise InvalidInputError(f"expected {_KEY_BYTES} bytes in base64 as key {number}, found others", hints=[_MAKE])
    return found
