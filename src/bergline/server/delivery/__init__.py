"""Delivery of events to webhooks: which addresses may be called, and signed messages to them."""
