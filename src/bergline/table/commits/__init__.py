"""The one commit loop: attempts, checks, retries, and how an operation becomes a snapshot."""
