"""Who holds the pointer: stores that swap it, and the catalog over them."""
