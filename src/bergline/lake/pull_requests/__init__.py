"""Pull requests of a lake."""
