USE shop

SELECT e.name, t.n FROM emp e, LATERAL (SELECT count(*) AS n FROM sale s WHERE s.emp_id = e.id) t ORDER BY e.id

SELECT e.name, t.amount FROM emp e LEFT JOIN LATERAL (SELECT amount FROM sale s WHERE s.emp_id = e.id ORDER BY amount DESC LIMIT 1) t ORDER BY e.id

SELECT a.a, l.x, m.y FROM nums a, LATERAL (SELECT a.a + 1 AS x) l, LATERAL (SELECT l.x * 2 AS y) m ORDER BY 1, 2, 3

SELECT d.city, t.name FROM dept d CROSS JOIN LATERAL (SELECT name FROM emp WHERE emp.dept = d.dept) t ORDER BY 1, 2

SELECT d.city, t.top FROM dept d JOIN LATERAL (SELECT max(salary) AS top FROM emp WHERE emp.dept = d.dept) t ON t.top > 4000 ORDER BY 1, 2

SELECT id, id + 1 AS next, next * 2 AS twice FROM emp ORDER BY id

SELECT dept AS d, d || '!' AS loud, count(*) FROM emp GROUP BY dept ORDER BY 1

SELECT * FROM emp, LATERAL (SELECT emp.nosuch)

SELECT * FROM emp, LATERAL (SELECT dept.city FROM dept WHERE dept.dept = emp.dept UNION ALL SELECT emp.name) ORDER BY id, city

SELECT * FROM LATERAL (SELECT 1)

SELECT s.sale_id, t.v FROM sale s, LATERAL (SELECT s.place.zip + s.qty AS v) t WHERE t.v IS NOT NULL ORDER BY s.sale_id
