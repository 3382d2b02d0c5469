"""The two kinds of Spark session, classic and Spark Connect: one protocol, two implementations."""
