"""Opens a client for AWS Glue with boto3, which is loaded only when Glue is used."""

import importlib
from functools import cache
from typing import Any

from bergline.catalog.glue_errors import mark_answer
from bergline.catalog.glue_settings import GlueSettings
from bergline.errors import InvalidInputError, UnsupportedError

_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 30


def open_client(settings: GlueSettings) -> Any:
    """A client that sends each request once: what was sent twice below us could report our own change as lost."""
    try:
        boto3, botocore, config = map(importlib.import_module, ("boto3", "botocore.session", "botocore.config"))
    except ImportError:
        raise UnsupportedError(
            "expected the package boto3 for AWS Glue, found none", hints=["pip install 'bergline[glue]'"]
        ) from None
    key, secret, token = settings.keys or (None, None, None)
    try:
        core = botocore.get_session()
        core.register_component("data_loader", _loader())
        session = boto3.Session(
            botocore_session=core,
            profile_name=settings.profile,
            region_name=settings.region,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
        )
        client = session.client(
            "glue",
            endpoint_url=settings.endpoint,
            config=config.Config(
                retries={"mode": "standard", "total_max_attempts": 1},
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_ANSWER_SECONDS,
                user_agent_extra="bergline",
            ),
        )
        client.meta.events.register("response-received.glue", mark_answer)
    except Exception as error:  # noqa: BLE001  (boto3 raises its own and ValueError; none may escape)
        hints = ["write glue://us-east-1, or set glue.region"] if type(error).__name__ == "NoRegionError" else []
        raise InvalidInputError(f"cannot open AWS Glue: {error}", hints=hints) from None
    return client


@cache
def _loader() -> Any:
    """What Glue's requests look like, read once: it takes longer than anything else here."""
    return importlib.import_module("botocore.loaders").create_loader()
