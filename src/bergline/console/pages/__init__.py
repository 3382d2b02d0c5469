"""Pages of the console, a module each."""
