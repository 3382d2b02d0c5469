"""Row engines: they read and rewrite rows for operations, by frozen plans. Nothing here plans or commits."""
