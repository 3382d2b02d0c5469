"""Tables by name: methods that a lake finds when it is asked for them; what they do is in the tests of `lake`."""

import inspect

from bergline import Lake
from bergline.lake.tables import LakeTables


def test_methods_of_a_lake_have_the_signature_and_text_of_its_part() -> None:
    for name in ("create_table", "load_table", "stage_table", "register_table", "purge_table", "transaction"):
        method, part = getattr(Lake, name), getattr(LakeTables, name)
        assert inspect.signature(method) == inspect.signature(part)
        assert method.__doc__ == part.__doc__
