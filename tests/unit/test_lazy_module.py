"""Modules that are imported when they are used."""

import sys

from bergline.lazy_module import LazyModule


def test_module_is_imported_with_its_first_attribute() -> None:
    module = LazyModule("colorsys")
    sys.modules.pop("colorsys", None)
    assert repr(module) == "LazyModule('colorsys')"
    assert "colorsys" not in sys.modules
    assert module.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert "colorsys" in sys.modules
