"""Sessions on a Spark Connect server, which runs plans that are sent to it and tells little about them."""
