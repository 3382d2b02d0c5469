CREATE TEMPORARY FUNCTION plus(x INT, y INT DEFAULT 1) RETURNS INT RETURN x + y

SELECT plus(id), plus(id, 10), plus(y => 2, x => id) FROM shop.emp ORDER BY id

CREATE TEMPORARY FUNCTION top_salary() RETURNS DECIMAL(8, 2) RETURN (SELECT max(salary) FROM shop.emp)

SELECT top_salary()

CREATE TEMPORARY FUNCTION people(d STRING) RETURNS TABLE (id INT, name STRING) RETURN SELECT id, name FROM shop.emp WHERE dept = d

SELECT * FROM people('dev') ORDER BY id

SELECT d.city, p.name FROM shop.dept d, LATERAL people(d.dept) p ORDER BY 1, 2

CREATE TEMPORARY FUNCTION bad() RETURNS INT RETURN (SELECT nosuch FROM shop.emp)

CREATE TEMPORARY FUNCTION sold(e INT) RETURNS BIGINT RETURN (SELECT count(*) FROM shop.sale WHERE emp_id = e)

SELECT name, sold(id) FROM shop.emp ORDER BY id

CREATE OR REPLACE TEMPORARY FUNCTION plus(x INT) RETURNS INT RETURN x + 100

SELECT max(plus(id)) FROM shop.emp

SELECT plus(id, 1) FROM shop.emp

DROP TEMPORARY FUNCTION plus

SELECT plus(id) FROM shop.emp

DROP TEMPORARY FUNCTION IF EXISTS plus

SELECT mask(name), url_encode(name), split(name, 'n') FROM shop.emp ORDER BY id

SELECT system.builtin.upper(name), builtin.lower(name) FROM shop.emp ORDER BY id

SELECT name FROM shop.emp WHERE regexp_count(name, '[aeiou]') = 1 ORDER BY 1
