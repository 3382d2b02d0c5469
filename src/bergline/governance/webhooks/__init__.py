"""Webhooks: where a server sends events, and the record of deliveries."""
