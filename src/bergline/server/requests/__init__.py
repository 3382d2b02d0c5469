"""How a request is run: in which thread, with which others, and written down with its change."""
