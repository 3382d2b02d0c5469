TABLE shop.emp |> WHERE id < 4 |> SELECT name |> ORDER BY name

FROM shop.emp |> EXTEND salary * 2 AS twice |> WHERE twice > 9000 |> SELECT name, twice |> ORDER BY name

FROM shop.emp |> AGGREGATE sum(salary) AS total, count(*) AS n GROUP BY dept |> ORDER BY dept

FROM shop.emp |> AGGREGATE max(id)

FROM shop.emp |> SET salary = salary + 1, name = upper(name) |> SELECT name, salary |> ORDER BY 1

FROM shop.emp |> DROP boss, hired, salary |> ORDER BY id |> LIMIT 2

FROM shop.emp |> AS e |> JOIN shop.dept d ON e.dept = d.dept |> SELECT e.name, d.city |> ORDER BY name

FROM shop.emp |> LEFT JOIN shop.dept USING (dept) |> WHERE city IS NULL |> SELECT name

FROM shop.nums |> UNION ALL (SELECT 9, 9, 'q') |> AGGREGATE count(*) AS n

FROM shop.nums |> SELECT a |> EXCEPT (SELECT b FROM shop.nums) |> ORDER BY a

FROM shop.nums |> SELECT DISTINCT a, b |> ORDER BY a, b |> LIMIT 3 OFFSET 1

FROM shop.emp |> SELECT id, dept |> PIVOT (count(id) FOR dept IN ('dev', 'ops'))

FROM shop.nums |> SELECT a, b |> UNPIVOT (v FOR k IN (a, b)) |> ORDER BY k, v

FROM shop.emp |> TABLESAMPLE (100 PERCENT) |> AGGREGATE count(*)

FROM shop.sale |> LATERAL VIEW explode(tags) AS tag |> AGGREGATE count(*) AS n GROUP BY tag |> ORDER BY tag

FROM shop.emp |> EXTEND row_number() OVER (PARTITION BY dept ORDER BY id) AS n |> WHERE n = 1 |> SELECT id |> ORDER BY id

SELECT name FROM shop.emp WHERE id > 2 |> WHERE length(name) = 3 |> AGGREGATE collect_list(name) AS all_names

WITH d AS (FROM shop.dept |> WHERE budget > 50) FROM d |> SELECT city |> ORDER BY city

VALUES (1), (2) AS v(id) |> JOIN shop.emp USING (id) |> SELECT id, name |> ORDER BY id

FROM shop.emp |> SELECT sum(id)

FROM shop.emp |> WHERE nosuch = 1

FROM shop.emp |> AGGREGATE count(*) AS n GROUP BY nosuch

FROM shop.emp |> DROP nosuch

FROM (FROM shop.emp |> SELECT id) |> AGGREGATE sum(id) AS s |> SELECT s + 1 AS t

SELECT * FROM shop.emp WHERE id IN (FROM shop.sale |> WHERE qty > 3 |> SELECT emp_id) |> SELECT name |> ORDER BY name

FROM shop.dept |> SET budget = (SELECT max(salary) FROM shop.emp WHERE emp.id IN (SELECT emp_id FROM shop.sale)) |> ORDER BY dept

VALUES (1), (2) AS v(a) |> SET a = a + (SELECT count(*) FROM shop.emp) |> WHERE a > (SELECT min(id) FROM shop.emp) |> ORDER BY a
