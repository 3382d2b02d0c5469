"""What all work on Spark needs: sessions of both kinds, types, errors, executors."""
