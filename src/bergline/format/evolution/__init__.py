"""How schemas, partition specs and whole tables may change."""
