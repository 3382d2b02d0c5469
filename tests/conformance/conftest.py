"""The official runtime with the classes of AWS."""

import os
from collections.abc import Iterator

import pytest

from support.servers.peers import OfficialRuntime, needs_java

SDK = [
    f"software.amazon.awssdk:{module}:2.44.4"
    for module in ("glue", "s3", "sts", "kms", "dynamodb", "url-connection-client")
]


@pytest.fixture(scope="session")
def official_aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfficialRuntime]:
    """The official runtime with Glue and S3, and without keys, in a process of its own."""
    needs_java()
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            environment.delenv(name)
        runtime = OfficialRuntime(tmp_path_factory.mktemp("official-aws") / "log.txt", *SDK)
        with runtime as started:
            started.python("result = 1")  # it has the environment now
            environment.undo()
            yield started
