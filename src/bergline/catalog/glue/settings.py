"""Settings of AWS Glue, from `glue://region/catalog-id` and from properties as named by Java and PyIceberg."""

import re
from collections.abc import Mapping

import msgspec

from bergline.errors import InvalidInputError, near_names
from bergline.io.settings import PropertyReader

GLUE_PROPERTIES = (
    "glue.endpoint",
    "glue.region",
    "glue.id",
    "glue.access-key-id",
    "glue.secret-access-key",
    "glue.session-token",
    "glue.profile-name",
    "glue.max-retries",
    "glue.skip-archive",
    "glue.skip-name-validation",
)
GLUE_REFUSED = {
    "glue.lakeformation-enabled": "set credentials that may read and write the tables' files",
    "glue.retry-mode": "throttled requests are retried; glue.max-retries says how often",
}
_EXAMPLE = "`glue://`, `glue://us-east-1` or `glue://us-east-1/123456789012`"
_URI = re.compile(r"glue://(?:(?P<region>[a-z0-9-]{1,64})(?:/(?P<id>[^/?#\s][^?#\s]*)?)?)?")
_REGION = re.compile(r"[a-z0-9-]{1,64}")
_DEFAULT_RETRIES = 10
_MOST_RETRIES = 100


class GlueSettings(msgspec.Struct, frozen=True):
    """Settings of a Glue client; None means that boto3 takes it from the environment."""

    endpoint: str | None
    region: str | None
    catalog_id: str | None
    credentials: tuple[str, str, str | None] | None
    """Access key, secret key, session token."""
    profile: str | None
    max_retries: int
    skip_archive: bool
    any_name: bool

    def __repr__(self) -> str:
        return f"GlueSettings({self.endpoint or self.region!r})"


def is_glue_property(name: object) -> bool:
    """Whether a property configures Glue rather than storage."""
    return isinstance(name, str) and name.startswith("glue.")


def glue_settings(uri: str, properties: Mapping[str, str]) -> GlueSettings:
    """Parse the settings; InvalidInputError for an invalid URI or property. Credentials appear in no message."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise InvalidInputError(f"expected a catalog like {_EXAMPLE}, found `{uri}`")
    _check_names(properties)
    given = PropertyReader(properties)
    given.refuse(GLUE_REFUSED)
    region = _same(match["region"], given.text("glue.region"), "glue.region") or given.text("client.region")
    if region and not _REGION.fullmatch(region):
        raise InvalidInputError(f"expected a region like `eu-central-1` in property `glue.region`, found `{region}`")
    credentials, profile = _credentials(given), given.text("glue.profile-name")
    if credentials and profile:
        raise InvalidInputError("expected `glue.access-key-id` or `glue.profile-name`, found both")
    return GlueSettings(
        endpoint=given.endpoint("glue.endpoint"),
        region=region,
        catalog_id=_same(match["id"], given.text("glue.id"), "glue.id"),
        credentials=credentials,
        profile=profile,
        max_retries=_retries(given),
        skip_archive=given.boolean("glue.skip-archive") is not False,
        any_name=bool(given.boolean("glue.skip-name-validation")),
    )


def _check_names(properties: Mapping[str, str]) -> None:
    for name, value in properties.items():
        if not is_glue_property(name):
            continue
        if name not in GLUE_PROPERTIES and name not in GLUE_REFUSED:
            near = near_names(name, GLUE_PROPERTIES)
            raise InvalidInputError(
                f"expected a property of Glue such as `glue.region`, found `{name}`",
                hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
            )
        if not isinstance(value, str):
            raise InvalidInputError(f"expected text for property `{name}`, found {type(value).__name__}")


def _same(in_uri: str | None, in_property: str | None, name: str) -> str | None:
    if in_uri and in_property and in_uri != in_property:
        raise InvalidInputError(f"expected one value for `{name}`, found `{in_uri}` in the URI and `{in_property}`")
    return in_uri or in_property


def _credentials(given: PropertyReader) -> tuple[str, str, str | None] | None:
    """The credentials from `glue.*` with their session token, otherwise those from `client.*`."""
    for kind in ("glue", "client"):
        token = given.text(f"{kind}.session-token")
        if credentials := given.pair((f"{kind}.access-key-id",), (f"{kind}.secret-access-key",)):
            return (*credentials, token)
        if token:
            raise InvalidInputError(
                f"expected `{kind}.access-key-id` with `{kind}.session-token`, found only the token"
            )
    return None


def _retries(given: PropertyReader) -> int:
    value = given.text("glue.max-retries")
    if value is None:
        return _DEFAULT_RETRIES
    if not re.fullmatch(r"\d{1,3}", value) or int(value) > _MOST_RETRIES:
        raise InvalidInputError(
            f"expected a number up to {_MOST_RETRIES} in property `glue.max-retries`, found `{value}`"
        )
    return int(value)
