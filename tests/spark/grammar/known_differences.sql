-- Statements that give something else on lake tables than on Spark's own. The list can only shrink: `test_grammar.py` fails when one of them is equal.

--because REFRESH without TABLE is refused
REFRESH shop.emp

--because columns with a collation are refused
CREATE TABLE shop.coll (a STRING COLLATE UTF8_LCASE)

INSERT INTO shop.coll VALUES ('A'), ('b')

SELECT a FROM shop.coll WHERE a = 'a'

--because errors about columns of a new table have other conditions, or none
CREATE TABLE shop.bad (a INT) PARTITIONED BY (nosuch)

--because defaults of columns are literals, and need format version 3
CREATE TABLE shop.defaults (a INT, b STRING DEFAULT 'x', c INT DEFAULT 1 + 1)

INSERT INTO shop.defaults (a) VALUES (1)

SELECT * FROM shop.defaults

--because DESCRIBE ... PARTITION is refused
DESCRIBE shop.part PARTITION (p = 'a')

DESCRIBE shop.part PARTITION (p = 'nosuch')

DESCRIBE shop.emp PARTITION (dept = 'dev')

--because other condition of the error: INVALID_PARTITION_OPERATION
SHOW PARTITIONS shop.emp

--because a view dropped as a table, or a table as a view, is not found
DROP VIEW shop.emp

DROP TABLE shop.v

--because an INSERT into a view does not find a table
INSERT INTO shop.v VALUES (1, 'x')

--because scripts are left to Spark, which does not see lake tables
BEGIN
  CASE (SELECT city FROM shop.dept WHERE dept = 'ops')
    WHEN 'Oslo' THEN SELECT 1;
    WHEN 'Rome' THEN SELECT 2;
    ELSE SELECT 3;
  END CASE;
END

BEGIN
  DECLARE t STRING DEFAULT 'shop.emp';
  SELECT count(*) FROM IDENTIFIER(t);
END

--because a comment that is not closed is a syntax error of bergline's own
SELECT max(id) FROM shop.emp /* not closed

--because errors of DELETE, UPDATE and MERGE have other conditions
UPDATE shop.t SET id = max(id)

--because CREATE TEMP VIEW IDENTIFIER(...) over a lake's table is refused
SELECT sum(a) FROM temp_named

CREATE OR REPLACE TEMP VIEW IDENTIFIER('temp_named') AS SELECT a FROM IDENTIFIER('shop.named')

--because errors have the conditions that Spark gives for tables of other catalogs, not those of its own
ANALYZE TABLE shop.emp COMPUTE STATISTICS FOR COLUMNS nosuch

ALTER TABLE shop.t ADD COLUMN a INT

DESCRIBE shop.emp nosuch

INSERT INTO shop.byp PARTITION (nosuch = 1) VALUES (1, 'x')

INSERT INTO shop.byp PARTITION (p = 'a') VALUES (1, 'x', 'y')

CREATE VIEW shop.v AS SELECT 1

DROP VIEW shop.w2 -- 2
