"""The smoke set on other versions of PySpark: the newest, and with `make spark-versions` the oldest too."""

import pytest

from support.paths import ROOT
from support.processes.smoke_checks import CHECKS
from support.processes.smoke_run import Results, run_smoke
from support.servers.peers import needs_java

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

VERSIONS = ("4.3.0", "4.0.5")
"""Those that the Makefile installs beside the one in requirements-dev.lock."""


@pytest.fixture(scope="module", params=VERSIONS)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """What came of each check on one version."""
    packages = ROOT / ".venv" / f"spark-{request.param}"
    if not packages.exists():
        pytest.skip(f"no PySpark {request.param}: `make spark-versions` installs it")
    needs_java()
    home = str(packages / "pyspark")
    directory = tmp_path_factory.mktemp("version")
    return run_smoke(directory, PYTHONPATH=str(packages), SPARK_HOME=home, SMOKE_SPARK_VERSION=request.param)


@pytest.mark.parametrize("check", CHECKS)
def test_on_other_spark_versions(check: str, results: Results) -> None:
    assert results[check] is None, results[check]
