"""Sessions whose driver is in this process, reached through py4j: Spark's parser and optimizer can be asked."""
