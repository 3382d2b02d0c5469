"""Which snapshots and files may go, and letting them go."""
