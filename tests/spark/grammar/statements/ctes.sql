WITH d AS (SELECT dept FROM shop.dept WHERE city = 'Oslo') SELECT name FROM shop.emp WHERE dept IN (SELECT dept FROM d) ORDER BY name

WITH a AS (SELECT id, dept FROM shop.emp), b AS (SELECT dept, count(*) AS n FROM a GROUP BY dept) SELECT * FROM b ORDER BY dept

WITH t(x, y) AS (SELECT id, name FROM shop.emp) SELECT x, y FROM t WHERE x > 5 ORDER BY x

WITH emp AS (SELECT 1 AS id) SELECT * FROM emp

WITH emp AS (SELECT 1 AS id) SELECT emp.id, e.name FROM emp JOIN shop.emp e ON emp.id = e.id

SELECT * FROM (WITH t AS (SELECT max(id) AS m FROM shop.emp) SELECT m + 1 FROM t)

WITH t AS (WITH u AS (SELECT id FROM shop.emp) SELECT id + 1 AS id FROM u) SELECT sum(id) FROM t

WITH t AS (SELECT id FROM shop.emp) SELECT (WITH t AS (SELECT 99 AS id) SELECT id FROM t), min(id) FROM t

WITH t AS (SELECT dept, salary FROM shop.emp) SELECT a.dept, b.salary FROM t a JOIN t b ON a.dept = b.dept AND a.salary > b.salary ORDER BY 1, 2

WITH t AS (SELECT 1), t AS (SELECT 2) SELECT * FROM t

WITH t(a, b) AS (SELECT id FROM shop.emp) SELECT * FROM t

WITH t AS (SELECT * FROM t2), t2 AS (SELECT 1) SELECT * FROM t

WITH s AS (SELECT place.city AS city, sum(qty) AS q FROM shop.sale GROUP BY ALL) SELECT city, q FROM s WHERE q > (SELECT avg(q) FROM s) ORDER BY city

WITH w AS (SELECT id, ntile(2) OVER (ORDER BY id) AS half FROM shop.emp) SELECT half, collect_list(id) FROM w GROUP BY half ORDER BY half

WITH x AS (TABLE shop.dept) SELECT count(*) FROM x

WITH x AS (FROM shop.dept SELECT city) SELECT DISTINCT city FROM x ORDER BY city

WITH x AS (VALUES (1, 'dev'), (2, 'ops')) SELECT x.col1, name FROM x JOIN shop.emp ON emp.dept = x.col2 ORDER BY name
