"""Tables as numbered metadata files in directories, as Java's Hadoop catalog has them."""
