CREATE TEMPORARY VIEW tv AS SELECT id, name FROM shop.emp WHERE id < 4

SELECT * FROM tv ORDER BY id

CREATE OR REPLACE TEMP VIEW tv (x COMMENT 'the id') AS SELECT id FROM shop.emp

SELECT max(x) FROM tv

CREATE TEMP VIEW tv AS SELECT 1

CREATE TEMP VIEW IF NOT EXISTS tv AS SELECT 1

SELECT tv.x, e.name FROM tv JOIN shop.emp e ON tv.x = e.id ORDER BY 1

CREATE GLOBAL TEMP VIEW grammar_gv AS SELECT dept FROM shop.dept

SELECT * FROM global_temp.grammar_gv ORDER BY dept

DROP VIEW global_temp.grammar_gv

CREATE VIEW shop.v AS SELECT id, name, dept FROM shop.emp WHERE id > 2

SELECT * FROM shop.v ORDER BY id

SELECT v.name, d.city FROM shop.v v JOIN shop.dept d USING (dept) ORDER BY 1

CREATE VIEW shop.v AS SELECT 1

CREATE VIEW IF NOT EXISTS shop.v AS SELECT 1

CREATE OR REPLACE VIEW shop.v (a, b) COMMENT 'two columns' AS SELECT id, upper(name) AS u FROM shop.emp

SELECT a, b FROM shop.v WHERE a = 1

DESCRIBE shop.v

SHOW COLUMNS IN shop.v

CREATE VIEW shop.w AS SELECT max(a) AS m FROM shop.v

SELECT m FROM shop.w

ALTER VIEW shop.w AS SELECT min(a) AS m FROM shop.v

SELECT m + 1 FROM shop.w

ALTER VIEW shop.w SET TBLPROPERTIES ('k' = 'v')

SHOW TBLPROPERTIES shop.w ('k')

ALTER VIEW shop.w RENAME TO shop.w2

SELECT m FROM shop.w2

SELECT m FROM shop.w

SHOW VIEWS IN shop

CREATE VIEW shop.bad AS SELECT nosuch FROM shop.emp

CREATE VIEW shop.bad AS SELECT * FROM shop.nosuch

CREATE VIEW shop.bad (a, b) AS SELECT id FROM shop.emp

CREATE VIEW shop.bad AS SELECT * FROM tv

DROP VIEW shop.w2

DROP VIEW shop.w2

DROP VIEW IF EXISTS shop.w2

DROP VIEW shop.emp

DROP TABLE shop.v

INSERT INTO shop.v VALUES (1, 'x')

WITH v AS (SELECT 1 AS one) SELECT one FROM v

CREATE VIEW shop.cte_view AS WITH t AS (SELECT dept, count(*) AS n FROM shop.emp GROUP BY dept) SELECT * FROM t WHERE n > 1

SELECT * FROM shop.cte_view ORDER BY dept

CREATE VIEW shop.piped AS FROM shop.emp |> WHERE id > 5 |> SELECT id, name

SELECT * FROM shop.piped ORDER BY id

USE shop

CREATE VIEW here AS SELECT id FROM emp WHERE id = 1

SELECT * FROM here

SELECT * FROM shop.here

CREATE TABLE lost (a INT, b INT)

CREATE VIEW over_lost AS SELECT a, b FROM lost

DROP TABLE lost

SELECT * FROM over_lost

DROP VIEW tv

SELECT * FROM tv
