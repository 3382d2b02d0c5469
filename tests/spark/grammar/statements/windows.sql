SELECT name, dept, row_number() OVER (PARTITION BY dept ORDER BY salary DESC, name) AS n FROM shop.emp ORDER BY dept, n

SELECT name, rank() OVER (ORDER BY salary), dense_rank() OVER (ORDER BY salary), percent_rank() OVER (ORDER BY salary) FROM shop.emp ORDER BY name

SELECT name, cume_dist() OVER (ORDER BY salary NULLS LAST), ntile(3) OVER (ORDER BY id) FROM shop.emp ORDER BY id

SELECT id, lag(name) OVER w, lead(name, 2, 'none') OVER w FROM shop.emp WINDOW w AS (ORDER BY id) ORDER BY id

SELECT id, lag(salary) IGNORE NULLS OVER (ORDER BY id) FROM shop.emp ORDER BY id

SELECT id, first_value(name) OVER w, last_value(name) OVER w, nth_value(name, 2) OVER w FROM shop.emp
WINDOW w AS (PARTITION BY dept ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY id

SELECT id, sum(salary) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM shop.emp ORDER BY id

SELECT a, sum(b) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM shop.nums ORDER BY a, 2

SELECT sale_id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) FROM shop.sale ORDER BY sale_id

SELECT dept, avg(salary) OVER (PARTITION BY dept), max(hired) OVER () FROM shop.emp ORDER BY id

SELECT name, sum(salary) FILTER (WHERE salary > 4000) OVER (PARTITION BY dept) FROM shop.emp ORDER BY name

SELECT dept, sum(sum(salary)) OVER (ORDER BY dept) FROM shop.emp GROUP BY dept ORDER BY dept

SELECT dept, rank() OVER (ORDER BY count(*) DESC) AS r FROM shop.emp GROUP BY dept ORDER BY r, dept

SELECT * FROM (SELECT name, row_number() OVER (PARTITION BY dept ORDER BY hired) AS n FROM shop.emp) WHERE n = 1 ORDER BY name

SELECT id, count(DISTINCT dept) OVER () FROM shop.emp

SELECT id, row_number() OVER (PARTITION BY dept) FROM shop.emp WHERE row_number() OVER (ORDER BY id) = 1

SELECT id, sum(id) OVER w FROM shop.emp

SELECT id, rank() OVER (PARTITION BY dept) FROM shop.emp

SELECT any_value(name) OVER (ORDER BY id), collect_list(id) OVER (ORDER BY id ROWS 2 PRECEDING) FROM shop.emp ORDER BY id

SELECT id, max(struct(salary, name)) OVER (PARTITION BY dept ORDER BY id) AS m FROM shop.emp ORDER BY id

SELECT dept, name FROM shop.emp QUALIFY row_number() OVER (PARTITION BY dept ORDER BY id) = 1
