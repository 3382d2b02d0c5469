"""The contents of delete files: row positions, deletion vectors, and Puffin files."""
