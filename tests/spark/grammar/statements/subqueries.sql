USE shop

SELECT name FROM emp WHERE salary > (SELECT avg(salary) FROM emp) ORDER BY name

SELECT name FROM emp WHERE dept IN (SELECT dept FROM dept WHERE city = 'Oslo') ORDER BY name

SELECT name FROM emp WHERE dept NOT IN (SELECT dept FROM dept WHERE city = 'Oslo') ORDER BY name

SELECT name FROM emp WHERE boss NOT IN (SELECT boss FROM emp)

SELECT city FROM dept d WHERE EXISTS (SELECT 1 FROM emp e WHERE e.dept = d.dept AND e.salary > 5000) ORDER BY city

SELECT city FROM dept d WHERE NOT EXISTS (SELECT * FROM emp e WHERE e.dept = d.dept) ORDER BY city

SELECT name, (SELECT city FROM dept d WHERE d.dept = e.dept) AS city FROM emp e ORDER BY id

SELECT name, (SELECT max(amount) FROM sale s WHERE s.emp_id = e.id) FROM emp e ORDER BY id

SELECT name, (SELECT count(*) FROM sale s WHERE s.emp_id = e.id) AS n FROM emp e ORDER BY id

SELECT dept FROM emp GROUP BY dept HAVING max(salary) > (SELECT min(salary) + 2000 FROM emp) ORDER BY dept

SELECT name FROM emp WHERE (dept, hired) IN (SELECT dept, max(hired) FROM emp GROUP BY dept) ORDER BY name

SELECT name FROM emp WHERE id IN (SELECT emp_id FROM sale WHERE qty > 1) OR id IN (SELECT boss FROM emp) ORDER BY name

SELECT name, id IN (SELECT emp_id FROM sale) AS sold FROM emp ORDER BY id

SELECT CASE WHEN EXISTS (SELECT 1 FROM emp WHERE salary > 6000) THEN 'rich' ELSE 'poor' END

SELECT (SELECT max(id) FROM emp) AS m, count(*) FROM emp GROUP BY (SELECT max(id) FROM emp)

SELECT * FROM (SELECT dept, max(salary) AS top FROM emp GROUP BY dept) t WHERE top > 4000 ORDER BY dept

SELECT * FROM (SELECT * FROM (SELECT id, name FROM emp WHERE id < 5) a WHERE id > 2) b ORDER BY id

SELECT name FROM emp e WHERE 1 < (SELECT count(*) FROM emp f WHERE f.dept = e.dept AND f.id <= e.id) ORDER BY name

SELECT name FROM emp WHERE id = (SELECT emp_id FROM sale WHERE sale_id = (SELECT max(sale_id) - 2 FROM sale))

SELECT name FROM emp ORDER BY (SELECT budget FROM dept d WHERE d.dept = emp.dept) NULLS FIRST, name

SELECT name FROM emp WHERE id > ALL (SELECT emp_id FROM sale)

SELECT (SELECT id FROM emp)

SELECT (SELECT id, name FROM emp)

SELECT name FROM emp WHERE id IN (SELECT id, name FROM emp)

SELECT name, (SELECT nosuch FROM dept) FROM emp

SELECT exists(array(1, 2), x -> x > 1), array_contains((SELECT collect_list(id) FROM emp), 3)
