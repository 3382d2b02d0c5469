SELECT * FROM (SELECT dept, salary, year(hired) AS y FROM shop.emp) PIVOT (sum(salary) FOR y IN (2019, 2020, 2021)) ORDER BY dept

SELECT * FROM (SELECT dept, id, boss FROM shop.emp) PIVOT (sum(id) AS s, max(id + 1) AS m FOR dept IN ('dev' AS d, 'ops' AS o)) ORDER BY boss

SELECT * FROM (SELECT a, b, c FROM shop.nums) PIVOT (count(*) FOR (a, c) IN ((1, 'x') AS one, (2, 'z') AS two)) ORDER BY b

SELECT * FROM (SELECT c, a FROM shop.nums) PIVOT (avg(a) FOR c IN ('x', 'y'))

SELECT * FROM (SELECT id, salary, dept FROM shop.emp) PIVOT (sum(CASE WHEN id > 2 THEN salary ELSE 0 END) FOR dept IN ('dev', 'law')) ORDER BY id

SELECT * FROM shop.nums PIVOT (max(struct(b, a)) FOR c IN ('x'))

SELECT * FROM (SELECT a, b FROM shop.nums) UNPIVOT (v FOR k IN (a, b)) ORDER BY k, v

SELECT * FROM (SELECT a, b FROM shop.nums) UNPIVOT INCLUDE NULLS (v FOR k IN (a AS first, b AS second)) ORDER BY k, v

SELECT * FROM (SELECT id, boss, salary, dept FROM shop.emp) UNPIVOT ((n, w) FOR k IN ((id, dept) AS one, (boss, dept) AS two)) ORDER BY ALL

SELECT up.k, up.v FROM shop.nums UNPIVOT (v FOR k IN (a, b)) AS up WHERE up.v > 2 ORDER BY 1, 2

SELECT * FROM (SELECT * FROM shop.nums) PIVOT (a FOR c IN ('x'))

SELECT * FROM shop.nums UNPIVOT (v FOR k IN (a, c))

SELECT * FROM shop.nums PIVOT (sum(a) FOR nosuch IN (1))
