"""What a served catalog consists of."""
