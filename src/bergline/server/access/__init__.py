"""Authentication, and what browsers may ask for."""
