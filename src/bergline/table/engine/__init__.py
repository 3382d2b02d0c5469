"""Row engines: what an operation lets read and rewrite rows, by frozen plans. Nothing here plans or commits."""
