"""Reports about a lake and its tables, as values: for the command line, the console and notebooks."""
