SELECT e.name, d.city FROM shop.emp e JOIN shop.dept d ON e.dept = d.dept ORDER BY e.name

SELECT e.name, d.city FROM shop.emp e LEFT OUTER JOIN shop.dept d ON e.dept = d.dept ORDER BY 1

SELECT e.name, d.city FROM shop.emp e RIGHT JOIN shop.dept d ON e.dept = d.dept ORDER BY d.city, e.name

SELECT e.name, d.city FROM shop.emp e FULL OUTER JOIN shop.dept d ON e.dept = d.dept AND d.budget > 50

SELECT name FROM shop.emp LEFT SEMI JOIN shop.dept ON emp.dept = dept.dept AND dept.city = 'Oslo'

SELECT name FROM shop.emp e LEFT ANTI JOIN shop.dept d ON e.dept = d.dept

SELECT count(*) FROM shop.emp CROSS JOIN shop.dept

SELECT count(*) FROM shop.emp, shop.dept, shop.nums

SELECT * FROM shop.emp NATURAL JOIN shop.dept ORDER BY id

SELECT * FROM shop.emp NATURAL LEFT JOIN shop.dept ORDER BY id

SELECT dept, emp.name, dept.city FROM shop.emp JOIN shop.dept USING (dept) ORDER BY name

SELECT dept, name, city FROM shop.emp FULL JOIN shop.dept USING (dept) ORDER BY dept NULLS LAST, name

SELECT e.name, b.name AS boss, bb.name AS boss_of_boss
FROM shop.emp e LEFT JOIN shop.emp b ON e.boss = b.id LEFT JOIN shop.emp bb ON b.boss = bb.id ORDER BY e.id

SELECT a.a, b.b FROM shop.nums a JOIN shop.nums b ON a.a < b.b ORDER BY a.a, b.b

SELECT a.a, b.b FROM shop.nums a JOIN shop.nums b ON a.a <=> b.b ORDER BY a.a, b.b

SELECT * FROM (shop.emp e JOIN shop.dept d ON e.dept = d.dept) JOIN shop.sale s ON s.emp_id = e.id WHERE s.qty > 1 ORDER BY s.sale_id

SELECT shop.emp.name, shop.sale.amount FROM shop.emp INNER JOIN shop.sale ON shop.emp.id = shop.sale.emp_id ORDER BY 2

SELECT e.*, s.place.city FROM shop.emp e JOIN shop.sale s ON e.id = s.emp_id AND s.place.zip BETWEEN 10 AND 30 ORDER BY s.sale_id

SELECT v.x, n.c FROM VALUES (1), (2), (9) AS v(x) LEFT JOIN shop.nums n ON v.x = n.a ORDER BY v.x, n.c

SELECT r.id, e.name FROM range(3) r LEFT JOIN shop.emp e ON r.id = e.id ORDER BY r.id

SELECT id FROM shop.emp JOIN shop.dept ON emp.dept = dept.dept JOIN shop.nums ON nums.a = emp.id GROUP BY id HAVING count(*) > 1

SELECT name FROM shop.emp JOIN shop.dept ON dept = dept

SELECT e.name FROM shop.emp e JOIN shop.nosuch n ON e.id = n.id

SELECT emp.name FROM shop.emp e

SELECT name, city FROM shop.emp JOIN shop.dept USING (nosuch)
