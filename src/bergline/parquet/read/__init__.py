"""The one reader: planned files to Arrow."""
