"""What is kept beside tables: pull requests, rules and reviews, grants, events, webhooks and the trash."""
