"""Catalogs that a server can serve."""

from pathlib import Path

import pytest

from bergline.errors import InvalidInputError, NotFoundError
from bergline.server.credentials.gcs_tokens import GcsVending
from bergline.server.credentials.sts import StsVending
from bergline.server.credentials.vending import StaticVending
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import VendingConfig, open_server

PROPERTIES = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "eu-west-1"}
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:iam::123456789012:role/tables"


def test_settings_name_the_warehouse_and_keep_the_limits(tmp_path: Path) -> None:
    context = open_server(f"sqlite:///{tmp_path}/catalog.db", name="sales", limits=ServerSettings(threads=2))
    assert (context.settings.name, context.settings.threads) == ("sales", 2)
    assert context.settings.warehouse == context.catalog.warehouse
    context.catalog.close()


@pytest.mark.parametrize(
    ("vend", "kind"),
    [
        (None, type(None)),
        (VendingConfig(), StaticVending),
        (VendingConfig(ROLE), StsVending),
        (VendingConfig(downscopes_gcs=True), GcsVending),
    ],
)
def test_credentials_are_vended_as_configured(tmp_path: Path, vend: VendingConfig | None, kind: type) -> None:
    context = open_server(f"sqlite:///{tmp_path}/catalog.db", properties=PROPERTIES, vend=vend)
    assert type(context.credentials.vending) is kind
    assert context.settings.storage == {"s3.region": "eu-west-1"}
    context.catalog.close()


def test_bad_settings_leave_no_catalog_open(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="lifetime"):
        open_server(f"sqlite:///{tmp_path}/catalog.db", properties=PROPERTIES, vend=VendingConfig(ROLE, 60))
    with pytest.raises(InvalidInputError, match="found both"):
        open_server(f"sqlite:///{tmp_path}/catalog.db", vend=VendingConfig(ROLE, downscopes_gcs=True))
    with pytest.raises(InvalidInputError, match="expected a role whose credentials may use keys of KMS, found none"):
        open_server(f"sqlite:///{tmp_path}/catalog.db", vend=VendingConfig(kms_keys=(KEY,)))
    for wrong in ("*", "alias/tables", KEY.replace("key/", "alias/"), KEY.replace("eu-west-1", "*"), f"{KEY}*"):
        with pytest.raises(InvalidInputError, match="expected the ARN of a key of AWS KMS"):
            open_server(f"sqlite:///{tmp_path}/catalog.db", vend=VendingConfig(ROLE, kms_keys=(wrong,)))
    with pytest.raises(NotFoundError):
        open_server(f"sqlite:///{tmp_path}/other.db", create=False)
    assert not (tmp_path / "other.db").exists()
