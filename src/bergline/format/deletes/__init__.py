"""What delete files hold: positions, deletion vectors, and the Puffin files around these."""
