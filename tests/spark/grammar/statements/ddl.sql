CREATE TABLE shop.t (a INT COMMENT 'the key', b STRING, c DECIMAL(10, 2)) COMMENT 'a table' TBLPROPERTIES ('k' = 'v')

CREATE TABLE shop.t (a INT)

CREATE TABLE IF NOT EXISTS shop.t (z INT)

DESCRIBE shop.t

ALTER TABLE shop.t ADD COLUMN d DATE

ALTER TABLE shop.t ADD COLUMNS (e INT COMMENT 'e', f STRING)

INSERT INTO shop.t VALUES (1, 'x', 1.5, DATE '2026-01-01', 2, 'f')

SELECT * FROM shop.t

ALTER TABLE shop.t ADD COLUMN a INT

ALTER TABLE shop.t SET TBLPROPERTIES ('k' = 'w', 'more' = '1')

SHOW TBLPROPERTIES shop.t ('k')

ALTER TABLE shop.t UNSET TBLPROPERTIES ('more')

ALTER TABLE shop.t UNSET TBLPROPERTIES IF EXISTS ('never')

SHOW TBLPROPERTIES shop.t ('more')

ALTER TABLE shop.t ALTER COLUMN b COMMENT 'text'

DESCRIBE shop.t b

COMMENT ON TABLE shop.t IS 'another comment'

ALTER TABLE shop.t RENAME TO shop.u

SELECT count(*) FROM shop.u

SELECT count(*) FROM shop.t

ALTER TABLE shop.nosuch RENAME TO shop.t

ALTER TABLE shop.u RENAME TO shop.emp

ALTER TABLE shop.nosuch ADD COLUMN a INT

DROP TABLE shop.u

DROP TABLE shop.u

DROP TABLE IF EXISTS shop.u

CREATE TABLE shop.ctas AS SELECT id, name AS n, salary * 2 AS twice FROM shop.emp

DESCRIBE shop.ctas

SELECT * FROM shop.ctas ORDER BY id

CREATE TABLE shop.ctas AS SELECT 1 AS x

CREATE TABLE IF NOT EXISTS shop.ctas AS SELECT 1 AS x

CREATE TABLE shop.from_cte AS WITH q AS (SELECT dept, count(*) AS n FROM shop.emp GROUP BY dept) SELECT * FROM q

SELECT * FROM shop.from_cte ORDER BY dept

CREATE TABLE shop.piped AS FROM shop.emp |> AGGREGATE max(id) AS m GROUP BY dept

SELECT m FROM shop.piped ORDER BY m

CREATE TABLE shop.bad AS SELECT nosuch FROM shop.emp

CREATE TABLE shop.bad AS SELECT 1 AS a, 2 AS a

CREATE TABLE shop.bad (a INT, a STRING)

CREATE TABLE shop.bad (a NOSUCHTYPE)

CREATE TABLE shop.bad (a INT) PARTITIONED BY (nosuch)

CREATE TABLE nosuchdb.bad (a INT)

SELECT * FROM shop.bad

CREATE TABLE shop.like_emp LIKE shop.emp

DESCRIBE shop.like_emp

SELECT count(*) FROM shop.like_emp

CREATE TABLE shop.types (
  a BOOLEAN, b INT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 5), g DATE, h TIMESTAMP, i TIMESTAMP_NTZ, j STRING, k BINARY,
  l ARRAY<INT>, m MAP<STRING, BIGINT>, n STRUCT<x: INT, y: ARRAY<STRING>>)

DESCRIBE shop.types

CREATE TABLE shop.small_ints (a TINYINT, b SMALLINT)

DESCRIBE shop.small_ints

CREATE TABLE shop.chars (a CHAR(5), b VARCHAR(5))

DESCRIBE shop.chars

INSERT INTO shop.chars VALUES ('ab', 'ab')

SELECT concat(a, '|', b, '|') FROM shop.chars

INSERT INTO shop.chars VALUES ('too long', 'too long')

CREATE TABLE shop.not_null (a INT NOT NULL, b INT)

CREATE TABLE shop.by_bucket (a INT, b STRING) CLUSTERED BY (a) INTO 4 BUCKETS

CREATE TABLE shop.defaults (a INT, b STRING DEFAULT 'x', c INT DEFAULT 1 + 1)

INSERT INTO shop.defaults (a) VALUES (1)

SELECT * FROM shop.defaults

USE shop

CREATE TABLE here (a INT)

INSERT INTO here VALUES (1)

SELECT * FROM shop.here

CREATE TABLE here_as AS SELECT id FROM emp WHERE id < 3

SELECT * FROM here_as ORDER BY id

CREATE TABLE here_parquet (a INT) USING parquet

INSERT INTO here_parquet VALUES (5)

SELECT a FROM here_parquet

SELECT a FROM shop.here_parquet

ALTER TABLE here RENAME TO there

SHOW TABLES LIKE 'th*'

DROP TABLE there

DROP TABLE IF EXISTS spark_catalog.default.here_parquet
