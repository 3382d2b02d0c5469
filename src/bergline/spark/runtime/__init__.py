"""What all work on Spark needs: the protocol of backends, types, errors, executors."""
