USE shop

EXPLAIN SELECT (

FROM emp SELECT name WHERE id < 3 ORDER BY name

FROM emp e JOIN dept d USING (dept) SELECT e.name, d.city WHERE d.budget > 50 ORDER BY 1

TABLE dept

VALUES (1, (SELECT max(id) FROM emp)), (2, 0)

SELECT * FROM VALUES ((SELECT count(*) FROM emp)) AS v(n)

SELECT e.id FROM emp AS e WHERE e.id = 1

SELECT (((id))) FROM ((emp)) ORDER BY 1

(SELECT id FROM emp WHERE id = 1)

((SELECT id FROM emp ORDER BY id) LIMIT 1)

SELECT ALL dept FROM dept ORDER BY 1

SELECT DISTINCT ON_TIME FROM (SELECT id > 3 AS on_time FROM emp) ORDER BY 1

SELECT id, * FROM nums JOIN emp ON a = id ORDER BY ALL

SELECT nums.*, emp.id FROM nums JOIN emp ON a = id ORDER BY ALL

SELECT count(emp.*) FROM emp

SELECT struct(*) FROM nums ORDER BY 1

SELECT concat(d.*) FROM (SELECT dept, city FROM dept) d ORDER BY 1

SELECT coalesce(*) FROM nums ORDER BY 1

SELECT `(i.|n.*)` FROM emp

SELECT * FROM emp WHERE (id, dept) IN ((1, 'dev'), (3, 'ops')) ORDER BY id

SELECT name FROM emp WHERE NOT (id = 1 OR dept = 'dev') ORDER BY name

SELECT name FROM emp WHERE hired IS NULL OR hired > '2021-01-01' ORDER BY name

SELECT p, count(*) FROM part WHERE p > 'a' GROUP BY p ORDER BY p

SELECT k, v FROM part WHERE p = 'b' AND v IS NULL

SELECT * FROM part ORDER BY p DESC, k
