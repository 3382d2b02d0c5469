"""The `bergline` script."""

import subprocess
import sys
from pathlib import Path


def test_without_its_parts_the_command_line_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['typer'] = None; from bergline.cli.entry import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "bergline: the command line needs more parts: "
        "pip install 'rich>=13' 'typer>=0.15', the extra `cli` of bergline\n"
    )
