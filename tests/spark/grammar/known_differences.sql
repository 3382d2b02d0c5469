-- Statements that give something else on lake tables than on Spark's own. The list can only shrink: `test_grammar.py` fails when one of them is equal.

--because CACHE TABLE of a lake's table by its name is refused
CACHE TABLE shop.emp

CACHE TABLE shop.nosuch

--because REFRESH without TABLE is refused
REFRESH shop.emp

--because columns with a collation are refused
CREATE TABLE shop.coll (a STRING COLLATE UTF8_LCASE)

INSERT INTO shop.coll VALUES ('A'), ('b')

SELECT a FROM shop.coll WHERE a = 'a'

--because errors about columns of a new table have other conditions, or none
CREATE TABLE shop.bad AS SELECT 1 AS a, 2 AS a

CREATE TABLE shop.bad (a INT, a STRING)

CREATE TABLE shop.bad (a INT) PARTITIONED BY (nosuch)

--because other condition of the error: UNSUPPORTED_DATATYPE
CREATE TABLE shop.bad (a NOSUCHTYPE)

--because CREATE TABLE ... LIKE is refused
CREATE TABLE shop.like_emp LIKE shop.emp

DESCRIBE shop.like_emp

SELECT count(*) FROM shop.like_emp

--because defaults of columns are literals, and need format version 3
CREATE TABLE shop.defaults (a INT, b STRING DEFAULT 'x', c INT DEFAULT 1 + 1)

INSERT INTO shop.defaults (a) VALUES (1)

SELECT * FROM shop.defaults

--because after USE of a lake's namespace, CREATE TABLE ... USING parquet creates in Spark's default database
INSERT INTO here_parquet VALUES (5)

SELECT a FROM here_parquet

SELECT a FROM shop.here_parquet

--because DESCRIBE ... PARTITION and TRUNCATE ... PARTITION are refused
DESCRIBE shop.part PARTITION (p = 'a')

DESCRIBE shop.part PARTITION (p = 'nosuch')

DESCRIBE shop.emp PARTITION (dept = 'dev')

TRUNCATE TABLE shop.byp PARTITION (p = 'a')

SELECT p, count(*) FROM shop.byp GROUP BY p ORDER BY p

--because a value that overflows is CAST_OVERFLOW, not CAST_OVERFLOW_IN_TABLE_INSERT
INSERT INTO shop.t VALUES (3000000000, 'x', 1.5)

--because statements with arguments are not parsed by Spark
SELECT struct(id a, :x b) FROM shop.emp ORDER BY 1

--because DataFrames as arguments are refused beside lake tables
SELECT f.w, e.name FROM {f} f JOIN shop.emp e ON f.id = e.id ORDER BY 1

SELECT count(*) FROM {f} JOIN shop.emp USING (id)

SELECT name FROM shop.emp WHERE id IN (SELECT id FROM {f}) AND id = :x

--because SQL functions are left to Spark, which does not see lake tables
CREATE TEMPORARY FUNCTION top_salary() RETURNS DECIMAL(8, 2) RETURN (SELECT max(salary) FROM shop.emp)

SELECT top_salary()

CREATE TEMPORARY FUNCTION people(d STRING) RETURNS TABLE (id INT, name STRING) RETURN SELECT id, name FROM shop.emp WHERE dept = d

SELECT * FROM people('dev') ORDER BY id

SELECT d.city, p.name FROM shop.dept d, LATERAL people(d.dept) p ORDER BY 1, 2

CREATE TEMPORARY FUNCTION bad() RETURNS INT RETURN (SELECT nosuch FROM shop.emp)

CREATE TEMPORARY FUNCTION sold(e INT) RETURNS BIGINT RETURN (SELECT count(*) FROM shop.sale WHERE emp_id = e)

SELECT name, sold(id) FROM shop.emp ORDER BY id

--because other condition of the error: INVALID_PARTITION_OPERATION
SHOW PARTITIONS shop.emp

--because a view dropped as a table, or a table as a view, is not found
DROP VIEW shop.emp

DROP TABLE shop.v

--because an INSERT into a view does not find a table
INSERT INTO shop.v VALUES (1, 'x')

--because DECLARE with a subquery, which Spark refuses, is not recognized as a statement with tables
DECLARE OR REPLACE lowest = (SELECT min(salary) FROM shop.emp)

--because EXECUTE IMMEDIATE ... INTO is refused
EXECUTE IMMEDIATE stmt INTO top, who

SELECT top, who

EXECUTE IMMEDIATE 'SELECT id, name FROM shop.emp WHERE id = ?' INTO top, who USING 4

SELECT top, who -- 2

EXECUTE IMMEDIATE 'SELECT id FROM shop.emp' INTO top

EXECUTE IMMEDIATE 'SELECT id FROM shop.emp WHERE id > 99' INTO top

EXECUTE IMMEDIATE 'SELECT id, name FROM shop.emp' INTO top

--because IDENTIFIER with a parameter in EXECUTE IMMEDIATE finds no lake table
EXECUTE IMMEDIATE 'SELECT * FROM IDENTIFIER(:t) ORDER BY a' USING 'shop.made' AS t

--because scripts are left to Spark, which does not see lake tables
SELECT max(id) AS id FROM shop.t

BEGIN
  DELETE FROM shop.t WHERE id = 5;
  INSERT INTO shop.t (id) VALUES (77);
END

BEGIN
  SELECT count(*) FROM shop.emp;
END

BEGIN
  DECLARE n INT DEFAULT 0;
  SET n = (SELECT max(id) FROM shop.emp);
  SELECT name FROM shop.emp WHERE id = n;
END

BEGIN
  DECLARE total BIGINT DEFAULT 0;
  FOR r AS SELECT id FROM shop.emp WHERE id < 4 DO
    SET total = total + r.id;
  END FOR;
  SELECT total;
END

BEGIN
  DECLARE i INT DEFAULT 1;
  WHILE i < 3 DO
    SET i = i + 1;
  END WHILE;
  SELECT name FROM shop.emp WHERE id = i;
END

BEGIN
  IF (SELECT count(*) FROM shop.emp) > 5 THEN
    SELECT 'many';
  ELSE
    SELECT 'few';
  END IF;
END

BEGIN
  CASE (SELECT city FROM shop.dept WHERE dept = 'ops')
    WHEN 'Oslo' THEN SELECT 1;
    WHEN 'Rome' THEN SELECT 2;
    ELSE SELECT 3;
  END CASE;
END

BEGIN
  CREATE TABLE shop.scripted (a INT, b STRING);
  INSERT INTO shop.scripted SELECT id, name FROM shop.emp WHERE id < 3;
  INSERT INTO shop.scripted VALUES (9, 'z');
END

SELECT * FROM shop.scripted ORDER BY a

BEGIN
  DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN SELECT 'zero'; END;
  SELECT 1 / (id - id) FROM shop.emp;
END

BEGIN
  lp: LOOP
    LEAVE lp;
  END LOOP;
  SELECT max(a) FROM shop.scripted;
END

BEGIN
  DECLARE i INT DEFAULT 0;
  REPEAT
    SET i = i + 1;
    INSERT INTO shop.scripted VALUES (i + 100, 'r');
  UNTIL i >= 2
  END REPEAT;
  SELECT count(*) FROM shop.scripted;
END

BEGIN
  DECLARE t STRING DEFAULT 'shop.emp';
  SELECT count(*) FROM IDENTIFIER(t);
END

BEGIN
  DECLARE x INT;
  EXECUTE IMMEDIATE 'SELECT max(id) FROM shop.emp' INTO x;
  SELECT x;
END

BEGIN
  SELECT nosuch FROM shop.emp;
END

BEGIN
  DROP TABLE shop.scripted;
END

BEGIN
  DECLARE n INT;
  SET (n) = (SELECT min(id) FROM shop.emp);
  VALUES (n);
END

--because several INSERTs after one FROM are refused
FROM shop.emp INSERT INTO shop.one SELECT id, name WHERE id = 3 INSERT INTO shop.two SELECT id, name WHERE id > 5

SELECT * FROM shop.one ORDER BY id

SELECT * FROM shop.two ORDER BY id

FROM (SELECT id, name FROM shop.emp WHERE id < 3) t
INSERT OVERWRITE shop.one SELECT id + 10, name
INSERT INTO shop.two SELECT id + 20, upper(name)

SELECT * FROM shop.one ORDER BY id -- 2

SELECT * FROM shop.two ORDER BY id -- 2

WITH t AS (SELECT 77 AS id, 'cte' AS name) FROM t INSERT INTO shop.one SELECT * INSERT INTO shop.two SELECT *

SELECT count(*) FROM shop.one WHERE name = 'cte'

FROM shop.emp INSERT INTO shop.one SELECT nosuch, name INSERT INTO shop.two SELECT id, name

FROM shop.emp INSERT INTO shop.nosuch SELECT id INSERT INTO shop.two SELECT id, name

SELECT count(*) FROM shop.two

FROM shop.emp INSERT INTO shop.one SELECT max(id), dept GROUP BY dept INSERT INTO shop.two SELECT id, name ORDER BY id LIMIT 1

SELECT count(*) FROM shop.one

SELECT count(*) FROM shop.two -- 2

--because names of tables and namespaces are found only in the case in which they were created
SELECT id, 'in another case' AS how FROM shop.t

DELETE FROM shop.T WHERE Id = 3

SHOW TABLES LIKE 'EMP'

SELECT count(*), min(id) FROM emp

USE SHOP

DROP TABLE SHOP.Mixed

DESCRIBE shop.mixed

ALTER TABLE shop.MIXED ADD COLUMN more INT

CREATE TABLE shop.mixed (a INT)

SELECT iD, nAmE FROM shop.MIXED ORDER BY 1

INSERT INTO SHOP.MIXED (ID, NAME) SELECT id, name FROM shop.emp WHERE Id = 2

INSERT INTO shop.mixed VALUES (1, 'x')

CREATE TABLE Shop.Mixed (Id INT, `Name` STRING)

WITH Q AS (SELECT ID FROM SHOP.EMP) SELECT max(id) FROM q

SELECT e.NAME, d.City FROM Shop.Emp e JOIN shop.DEPT d USING (Dept) ORDER BY 1

SHOW COLUMNS IN SHOP.emp

DESCRIBE Shop.Emp

SELECT name FROM SHOP.EMP ORDER BY name

SELECT Emp.Name FROM shop.Emp ORDER BY 1

SELECT name FROM EMP WHERE Emp.ID = 1

--because a statement that is none is said to be not supported yet
DROP shop.emp

--because FROM STREAM is read as an option of a table
SELECT id FROM STREAM shop.emp

SELECT id FROM STREAM(shop.emp)

--because a comment that is not closed is a syntax error of bergline's own
SELECT max(id) FROM shop.emp /* not closed

--because DELETE, UPDATE and MERGE are not parsed by Spark, and so have not all of its expressions
SELECT count(*) AS n FROM shop.t

SELECT id, 'by a variable' AS how FROM shop.t

SELECT id, name FROM shop.t WHERE id = 2

UPDATE shop.t SET name = IDENTIFIER('upper')(name) WHERE id = 2

SELECT id, 'by a lambda' AS how FROM shop.t

DELETE FROM shop.t WHERE exists(array(1, 2), x -> x = id) AND struct(id a, name b).a = 1

DELETE FROM shop.t WHERE id IN (TABLE shop.sale |> SELECT emp_id)

SELECT id FROM shop.t -- 2

--because errors of DELETE, UPDATE and MERGE have other conditions
UPDATE shop.t SET nosuch = 1

UPDATE shop.t SET id = max(id)

MERGE INTO shop.t USING shop.emp s ON t.id = s.id

--because CREATE TEMP VIEW IDENTIFIER(...) over a lake's table is refused
SELECT sum(a) FROM temp_named

CREATE OR REPLACE TEMP VIEW IDENTIFIER('temp_named') AS SELECT a FROM IDENTIFIER('shop.named')
