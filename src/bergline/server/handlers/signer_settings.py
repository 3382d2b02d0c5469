"""What clients need to have their requests for a table's files signed; there are no keys in it."""

from collections.abc import Sequence

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.endpoints import SIGN_REQUEST
from bergline.catalog.rest.protocol.names import encode_name, encode_namespace
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.vending import VendedCredentials, fingerprint_of
from bergline.server.handlers.context import ServerContext

_SIGNING = {
    "s3.remote-signing-enabled": "true",
    "s3.signer": "S3V4RestSigner",
    "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO",  # PyIceberg's other one cannot be told to ask for signatures
}
_ENDPOINT_NAMES = ("s3.signer.endpoint", "signer.endpoint")  # of Java before and since 1.11; PyIceberg has the first


def signer_settings(
    context: ServerContext, signer: S3Signer, name: TableName, directories: Sequence[str], staged: str | None = None
) -> VendedCredentials:
    """The settings for a table on S3; none for others."""
    if not any(scheme_of(directory) in S3_SCHEMES for directory in directories):
        return VendedCredentials((), "")
    names = {"namespace": encode_namespace(name.namespace, context.settings.separator), "table": encode_name(name.name)}
    endpoint = SIGN_REQUEST.url(**names).lstrip("/") + (f"?staged={staged}" if staged else "")
    config = signer.storage | _SIGNING | dict.fromkeys(_ENDPOINT_NAMES, endpoint)
    return VendedCredentials((), fingerprint_of("signing", endpoint), config=config)
