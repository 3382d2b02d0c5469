"""The names of all storage properties, and validation of those that a user sets."""

from collections.abc import Mapping
from typing import Any

from bergline.arguments import check_text
from bergline.errors import InvalidInputError, near_names
from bergline.io.azure import AZURE_ACCOUNT_PROPERTIES, AZURE_PROPERTIES, AZURE_REFUSED
from bergline.io.gcs import GCS_PROPERTIES, GCS_REFUSED
from bergline.io.s3 import S3_PROPERTIES, S3_REFUSED

STORE_PROPERTIES = (*S3_PROPERTIES, *GCS_PROPERTIES, *AZURE_PROPERTIES)
_REFUSED = (*S3_REFUSED, *GCS_REFUSED, *AZURE_REFUSED)  # recognized, and refused with a reason where they are read

_SECRET_WORDS = ("key", "secret", "token", "password", "credential", "sas", "connection-string")


def is_store_property(name: str) -> bool:
    """Whether a property is a storage property, supported or not."""
    return (
        name in STORE_PROPERTIES
        or name in _REFUSED
        or any(name.startswith(f"{prefix}.") for prefix in AZURE_ACCOUNT_PROPERTIES)
    )


def is_secret_property(name: str) -> bool:
    """Whether a property is a credential."""
    return any(word in name.lower() for word in _SECRET_WORDS)


def check_store_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Validate properties; InvalidInputError for an unknown name or a value that is not text.

    Values may be secret and are not shown.
    """
    for name, value in properties.items():
        check_text(name, "text for the name of a storage property")
        if not is_store_property(name):
            near = near_names(str(name), STORE_PROPERTIES)
            raise InvalidInputError(
                f"expected a storage property such as `s3.endpoint`, found `{name}`",
                hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
            )
        if not isinstance(value, str):
            raise InvalidInputError(f"expected text for property `{name}`, found {type(value).__name__}")
    return dict(properties)
