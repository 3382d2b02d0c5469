"""The check of tables: what is damaged, and what would mend it. Nothing is changed."""
