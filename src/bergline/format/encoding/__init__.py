"""How the specification puts values into bytes and text: whole numbers, dates, JSON and Avro."""
