"""Which directories have the files of which tables and views, and for whom they are reserved."""
