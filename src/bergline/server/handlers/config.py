"""What clients ask for first: the configuration, and a token from the OAuth2 endpoint that older clients use.

A valid token, sent there as a secret or to exchange, is returned to use.
"""

import base64
from urllib.parse import parse_qsl, unquote_plus

from bergline.catalog.at_ref.lake_ref import LakeRef, split_warehouse
from bergline.catalog.rest.protocol.bodies import ConfigResponse, OAuthError, OAuthTokenResponse
from bergline.catalog.rest.protocol.endpoints import ALWAYS_THERE, SIGN_REQUEST, TRASH_ENDPOINTS
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_PROPERTY
from bergline.catalog.rest.protocol.names import SEPARATOR_PROPERTY, UNIT_SEPARATOR, encode_separator
from bergline.catalog.rest.protocol.ref_retention import REF_RETENTION_PROPERTY
from bergline.errors import NotFoundError
from bergline.governance.endpoints import ENDPOINTS
from bergline.io.locations import normalized
from bergline.lake.at_ref import find_lake_ref
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response, json_response


def get_config(context: ServerContext, request: Request) -> Response:
    """Settings for clients; one server has one warehouse, known by its name or its location.

    Behind an `@`, a warehouse names a ref of the lake, which stands in the paths of all requests from then on.
    """
    settings = context.settings
    requested, at = split_warehouse(request.query.get("warehouse") or "")
    if requested and requested != settings.name and not _is_location(requested, settings.warehouse):
        raise NotFoundError(
            f"no warehouse `{requested[:200]}`",
            kind="warehouse",
            name=requested,
            hints=[f"this server has `{settings.name}`"],
        )
    own = {} if settings.separator == UNIT_SEPARATOR else {SEPARATOR_PROPERTY: encode_separator(settings.separator)}
    ref = None if at is None else _lake_ref(context, at)
    own |= {} if ref is None else {"prefix": ref.in_path}
    own |= {MAY_MOVE_PROPERTY: "true", REF_RETENTION_PROPERTY: "true"}
    unlisted = ALWAYS_THERE if settings.drop_retention_s else (*ALWAYS_THERE, *TRASH_ENDPOINTS)
    unlisted = unlisted if context.credentials.signer else (*unlisted, SIGN_REQUEST)
    return json_response(
        ConfigResponse(
            defaults=settings.storage,
            overrides=own,
            endpoints=tuple(str(e) for e in ENDPOINTS if e not in unlisted),
            idempotency_key_lifetime=f"PT{settings.idempotency_lifetime_s}S",
        )
    )


def _lake_ref(context: ServerContext, name: str) -> LakeRef | None:
    try:
        return find_lake_ref(context.catalog, name)
    except NotFoundError as error:
        if context.access.is_active:  # the names of others' refs are not for everybody
            raise NotFoundError(error.message, kind=error.kind, name=error.name) from None
        raise


def _is_location(requested: str, warehouse: str | None) -> bool:
    return warehouse is not None and normalized(requested).rstrip("/") == normalized(warehouse)


_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  (the name of a kind)
_MAX_FIELDS = 50


def get_token(context: ServerContext, request: Request) -> Response:
    """A token for a client's credentials."""
    try:
        form = dict(parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:
        return _refused("invalid_request", "expected a form")
    match form.get("grant_type"):
        case "client_credentials":
            token, kind = form.get("client_secret") or _basic_secret(request.headers.get("authorization", "")), None
        case grant if grant == _EXCHANGE:
            token, kind = form.get("subject_token", ""), _ACCESS_TOKEN
        case None:
            return _refused("invalid_request", "expected a grant_type")
        case _:
            return _refused("unsupported_grant_type", f"expected client_credentials or {_EXCHANGE}")
    if not context.authenticator.accepts(token, request.address):
        return _refused("invalid_client", "the credentials are not accepted", 401)
    return json_response(OAuthTokenResponse(token, "bearer", issued_token_type=kind, scope=form.get("scope")))


def _basic_secret(header: str) -> str:
    """The client's secret from HTTP basic authentication, which OAuth2 allows; empty if there is none."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return unquote_plus(base64.b64decode(encoded, validate=True).decode().partition(":")[2])
    except ValueError:
        return ""


def _refused(error: str, why: str, status: int = 400) -> Response:
    return json_response(OAuthError(error, why), status=status)
