"""Azure settings from Iceberg's properties and from locations."""

import pytest

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.io.azure import AZURE_REFUSED, azure_settings
from bergline.io.open_store import open_store

ACCOUNT = "container@account.dfs.core.windows.net"
KEY = "aHVzaC1odXNo"


@pytest.mark.parametrize("authority", [ACCOUNT, "container@account.blob.core.windows.net", "container@account"])
def test_location_names_container_and_account(authority: str) -> None:
    config = open_store("abfss", authority, {"adls.account-key": KEY}).store.config
    assert config == {"container_name": "container", "account_name": "account", "account_key": KEY}


@pytest.mark.parametrize("name", ["adls.account-name", "adls.auth.shared-key.account.name"])
def test_account_comes_from_properties_where_the_location_has_none(name: str) -> None:
    config = open_store("az", "container", {name: "account", "adls.auth.shared-key.account.key": KEY}).store.config
    assert config["account_name"] == "account"
    assert config["account_key"] == KEY


def test_other_clouds_have_their_own_hosts() -> None:
    config = azure_settings("container@account.dfs.core.usgovcloudapi.net", {}).config
    assert config["endpoint"] == "https://account.blob.core.usgovcloudapi.net"


@pytest.mark.parametrize("suffix", ["", ".account", ".account.dfs.core.windows.net"])
def test_token_may_be_for_one_account(suffix: str) -> None:
    properties = {f"adls.sas-token{suffix}": "sv=1&sig=x", "adls.sas-token.other": "sv=1&sig=y"}
    assert open_store("abfss", ACCOUNT, properties).store.config["sas_key"] == "sv=1&sig=x"


def test_connection_string_says_where_and_with_which_key() -> None:
    text = f"DefaultEndpointsProtocol=http;AccountName=dev;AccountKey={KEY}==;BlobEndpoint=http://127.0.0.1:10000/dev;"
    settings = azure_settings("container", {"adls.connection-string": text})
    assert settings.config == {
        "account_name": "dev",
        "account_key": f"{KEY}==",
        "endpoint": "http://127.0.0.1:10000/dev",
    }
    assert settings.client == {"allow_http": True}
    china = azure_settings(
        "container", {"adls.connection-string": "AccountName=a;EndpointSuffix=core.chinacloudapi.cn"}
    )
    assert china.config["endpoint"] == "https://a.blob.core.chinacloudapi.cn"


def test_identities_of_applications() -> None:
    properties = {"adls.tenant-id": "t", "adls.client-id": "c", "adls.client-secret": "hush-hush"}
    config = open_store("wasbs", ACCOUNT, properties).store.config
    assert (config["tenant_id"], config["client_id"], config["client_secret"]) == ("t", "c", "hush-hush")
    assert open_store("abfs", ACCOUNT, {"adls.token": "hush-hush"}).store.config.get("token") == "hush-hush"
    assert open_store("abfs", ACCOUNT, {"adls.anon": "true"}).store.config["skip_signature"] == "true"


def test_host_of_the_account_can_be_set() -> None:
    assert azure_settings(ACCOUNT, {"adls.account-host": "my.host"}).config["endpoint"] == "https://my.host"
    local = azure_settings(ACCOUNT, {"adls.account-host": "http://localhost:10000"})
    assert local.config["endpoint"] == "http://localhost:10000"
    assert local.client == {"allow_http": True}


@pytest.mark.parametrize(
    ("authority", "properties", "message"),
    [
        ("@account.dfs.core.windows.net", {}, "expected a container like"),
        ("account.dfs.core.windows.net", {}, "expected a container like"),
        ("container@", {}, "expected a container like"),
        ("container@a/b", {}, "expected a container like"),
        (ACCOUNT, {"adls.account-host": "a b"}, "in property `adls.account-host`"),
        (ACCOUNT, {"adls.connection-string": "hush-hush"}, "in property `adls.connection-string`"),
        (ACCOUNT, {"adls.connection-string": "BlobEndpoint=hush"}, "in BlobEndpoint of property"),
        ("container", {}, "cannot open abfss://container: .*Account must be specified"),
        (ACCOUNT, {"adls.account-key": "hush-hush!"}, "cannot open abfss://container: .*Invalid Access Key"),
        (ACCOUNT, {"adls.sas-token": "hush-hush"}, "cannot open abfss://container"),
    ],
)
def test_wrong_value_is_one_clear_error_without_secrets(
    authority: str, properties: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InvalidInputError, match=message) as caught:
        open_store("abfss", authority, properties)
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize("name", AZURE_REFUSED)
def test_what_we_cannot_do_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"property `{name}` is not supported"):
        azure_settings(ACCOUNT, {name: "value"})
