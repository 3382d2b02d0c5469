"""Pull requests: model, database records, REST protocol and publishing."""
