-- Statements whose results differ because of the table format, or because lake tables have more to name.

--because TINYINT and SMALLINT are INT
DESCRIBE shop.small_ints

--because CHAR and VARCHAR are STRING: no padding, no length
DESCRIBE shop.chars

SELECT concat(a, '|', b, '|') FROM shop.chars

INSERT INTO shop.chars VALUES ('too long', 'too long')

--because comments of a view's columns are empty, not null, as in the official runtime
DESCRIBE shop.v

--because _metadata is of Spark's own file sources
SELECT _metadata.file_name IS NOT NULL FROM shop.emp WHERE id = 1

--because what stands after a lake's table names its metadata tables
SELECT name FROM shop.`emp`.`nosuch`
