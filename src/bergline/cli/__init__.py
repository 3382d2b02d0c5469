"""The command line: results go to stdout, everything else to stderr."""
