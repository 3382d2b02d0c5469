"""How to connect to the server from each engine, printed when it starts."""

import json
import shlex
from collections.abc import Mapping

from bergline.io.locations import scheme_of
from bergline.quoting import quoted_name
from bergline.server.context.context import ServerContext
from bergline.server.credentials.sts import StsVending

_TRINO_FILES = {
    "s3": "native-s3",
    "s3a": "native-s3",
    "gs": "native-gcs",
    "abfss": "native-azure",
    "abfs": "native-azure",
}
_TRINO_S3 = {"s3.endpoint": "s3.endpoint", "s3.region": "s3.region", "client.region": "s3.region"}


def connection_examples(context: ServerContext, url: str) -> str:
    """The lines for bergline, PyIceberg, DuckDB, Spark, Flink and Trino, and where the console is."""
    name, has_token = context.settings.name, context.authenticator.has_tokens
    java = {"token": "TOKEN"} if has_token else {}
    if context.credentials.vending:
        java |= {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    elif context.credentials.signer:
        java |= {"header.X-Iceberg-Access-Delegation": "remote-signing"}
    lines = [
        f"serving `{name}` ({context.settings.warehouse or 'no warehouse'}) at {url}",
        "",
        f"  bergline   {_bergline(url, has_token=has_token)}",
        f"  PyIceberg  {_pyiceberg(name, url, has_token=has_token)}",
        f"  DuckDB     {_duckdb(name, url, has_token=has_token)}",
        f"  Spark      {_spark(name, url, java)}",
        f"  Flink      {_flink(name, url, java)}",
        f"  Trino      {_trino(context, url)}",
        f"  browser    {url}/",
        "",
    ]
    return "\n".join(lines)


def _bergline(url: str, *, has_token: bool) -> str:
    properties = ', properties={"token": "TOKEN"}' if has_token else ""
    return f'bergline.connect("{url}"{properties})'


def _pyiceberg(name: str, url: str, *, has_token: bool) -> str:
    settings = {"type": "rest", "uri": url} | ({"token": "TOKEN"} if has_token else {})
    return f"load_catalog({json.dumps(name)}, **{json.dumps(settings)})"


def _duckdb(name: str, url: str, *, has_token: bool) -> str:
    authentication = "TOKEN 'TOKEN'" if has_token else "AUTHORIZATION_TYPE 'none'"
    text, alias = name.replace("'", "''"), quoted_name(name, '"')
    return f"ATTACH '{text}' AS {alias} (TYPE iceberg, ENDPOINT '{url}', {authentication});"


def _spark(name: str, url: str, more: Mapping[str, str]) -> str:
    catalog = f"spark.sql.catalog.{name}"
    settings = {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "rest", f"{catalog}.uri": url}
    settings |= {f"{catalog}.{key}": value for key, value in more.items()}
    return " \\\n    ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings.items())


def _flink(name: str, url: str, more: Mapping[str, str]) -> str:
    settings = {"type": "iceberg", "catalog-type": "rest", "uri": url, **more}
    pairs = ", ".join(f"'{key}'='{value}'" for key, value in settings.items())
    return f"CREATE CATALOG {quoted_name(name)} WITH ({pairs});"


def _trino(context: ServerContext, url: str) -> str:
    """Lines of a file in `etc/catalog`; Trino does not ask the server how to read files."""
    settings = {"connector.name": "iceberg", "iceberg.catalog.type": "rest", "iceberg.rest-catalog.uri": url}
    if context.authenticator.has_tokens:
        settings |= {"iceberg.rest-catalog.security": "OAUTH2", "iceberg.rest-catalog.oauth2.token": "TOKEN"}
    files = _TRINO_FILES.get(scheme_of(context.settings.warehouse or ""), "hadoop")
    settings[f"fs.{files}.enabled"] = "true"
    if files == "native-s3":
        storage = context.settings.storage
        settings |= {_TRINO_S3[key]: value for key, value in storage.items() if key in _TRINO_S3}
        if "s3.endpoint" in storage:
            settings["s3.path-style-access"] = storage.get("s3.path-style-access", "true")
        if isinstance(context.credentials.vending, StsVending):  # Trino takes only those with a session token
            settings["iceberg.rest-catalog.vended-credentials-enabled"] = "true"
        else:
            settings |= {"s3.aws-access-key": "KEY", "s3.aws-secret-key": "SECRET"}
    return "\n    ".join(f"{key}={value}" for key, value in settings.items())
