"""Azure Data Lake Storage and Blob Storage, configured by Iceberg's properties."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from bergline.errors import InvalidInputError
from bergline.io.settings import PropertyReader, StoreSettings, check_endpoint

AZURE_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs", "az"})
AZURE_PROPERTIES = (
    "adls.account-name",
    "adls.auth.shared-key.account.name",
    "adls.account-key",
    "adls.auth.shared-key.account.key",
    "adls.sas-token",
    "adls.connection-string",
    "adls.tenant-id",
    "adls.client-id",
    "adls.client-secret",
    "adls.token",
    "adls.account-host",
    "adls.anon",
)
# these may end in the name of an account: adls.sas-token.<account>
AZURE_ACCOUNT_PROPERTIES = ("adls.sas-token", "adls.connection-string")
AZURE_REFUSED = {
    "adls.credential": "give adls.account-key, adls.sas-token or adls.token",
    "adls.token-credential-provider": "give adls.token, or adls.client-id with adls.client-secret and adls.tenant-id",
}
_CONTAINER = re.compile(r"[A-Za-z0-9$][A-Za-z0-9-]{2,62}")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_PUBLIC_CLOUD = "core.windows.net"


class AzureContainer(NamedTuple):
    """A container, and its account and host if the location names them."""

    name: str
    account: str | None
    host: str | None


def azure_settings(authority: str, properties: Mapping[str, str]) -> StoreSettings:
    """Settings for the container of a location like `abfss://container@account.dfs.core.windows.net/path`."""
    container = _container(authority)
    given = PropertyReader(properties)
    given.refuse(AZURE_REFUSED)
    account = container.account or given.text("adls.account-name", "adls.auth.shared-key.account.name")
    config: dict[str, Any] = {}
    if text := given.text(*_for_account("adls.connection-string", container, account)):
        config |= _connection_string(text)
    if account:
        config["account_name"] = account
    if container.host and not container.host.endswith(_PUBLIC_CLOUD):
        config["endpoint"] = f"https://{container.host.replace('.dfs.', '.blob.', 1)}"
    if host := given.text("adls.account-host"):
        address = host if "://" in host else f"https://{host}"
        check_endpoint(address, "property `adls.account-host`")
        config["endpoint"] = address.rstrip("/")
    if given.boolean("adls.anon"):
        config["skip_signature"] = True
    plain = {
        "account_key": ("adls.account-key", "adls.auth.shared-key.account.key"),
        "sas_key": _for_account("adls.sas-token", container, account),
        "tenant_id": ("adls.tenant-id",),
        "client_id": ("adls.client-id",),
        "client_secret": ("adls.client-secret",),
        "token": ("adls.token",),
    }
    config |= {key: value for key, names in plain.items() if (value := given.text(*names))}
    client = {"allow_http": True} if str(config.get("endpoint", "")).startswith("http:") else {}
    return StoreSettings("AzureStore", container.name, config, client)


def _container(authority: str) -> AzureContainer:
    name, at, host = authority.partition("@")
    if not _CONTAINER.fullmatch(name) or (at and not _HOST.fullmatch(host)):
        raise InvalidInputError(
            f"expected a container like `container@account.dfs.core.windows.net`, found `{authority}`"
        )
    return AzureContainer(name, host.split(".")[0] if at else None, host if "." in host else None)


def _for_account(name: str, container: AzureContainer, account: str | None) -> tuple[str, ...]:
    return (*(f"{name}.{part}" for part in (container.host, account) if part), name)


def _connection_string(text: str) -> dict[str, str]:
    """The endpoint and credentials in `AccountName=…;AccountKey=…;…`."""
    parts = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    if "AccountName" not in parts and "BlobEndpoint" not in parts:
        raise InvalidInputError("expected `AccountName=…;AccountKey=…` in property `adls.connection-string`")
    names = {"AccountName": "account_name", "AccountKey": "account_key", "SharedAccessSignature": "sas_key"}
    config = {key: parts[name] for name, key in names.items() if name in parts}
    if endpoint := parts.get("BlobEndpoint"):
        check_endpoint(endpoint, "BlobEndpoint of property `adls.connection-string`")
        config["endpoint"] = endpoint.rstrip("/")
    elif parts.get("EndpointSuffix", _PUBLIC_CLOUD) != _PUBLIC_CLOUD:
        protocol = parts.get("DefaultEndpointsProtocol", "https")
        config["endpoint"] = f"{protocol}://{parts['AccountName']}.blob.{parts['EndpointSuffix']}"
    return config
