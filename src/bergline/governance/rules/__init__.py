"""Rules about refs that a catalog keeps beside its tables; what they decide is in `catalog/protection/`."""
