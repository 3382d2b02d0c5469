"""The check of tables: what is damaged, and what would repair it. Nothing is changed."""
