"""What statements mean, as closed variants."""
