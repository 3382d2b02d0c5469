"""The console: pages over a lake, served by `bergline serve` and `bergline ui`."""
