"""The reader: planned files to Arrow."""
