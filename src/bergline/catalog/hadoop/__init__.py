"""The Hadoop catalog: tables as numbered metadata files in directories, as in Java."""
