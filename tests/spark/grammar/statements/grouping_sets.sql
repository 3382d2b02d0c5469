SELECT dept, boss, count(*) FROM shop.emp GROUP BY GROUPING SETS ((dept, boss), (dept), ()) ORDER BY 1, 2, 3

SELECT dept, count(*), grouping(dept) AS g FROM shop.emp GROUP BY ROLLUP (dept) ORDER BY g, dept

SELECT a, b, sum(a), grouping_id() FROM shop.nums GROUP BY CUBE (a, b) ORDER BY ALL

SELECT a, b, count(*) FROM shop.nums GROUP BY a, b WITH ROLLUP ORDER BY 1, 2, 3

SELECT a, b, count(*) FROM shop.nums GROUP BY a, b WITH CUBE ORDER BY 1, 2, 3

SELECT a, b, c, count(*) FROM shop.nums GROUP BY a, ROLLUP (b), CUBE (c) ORDER BY ALL

SELECT a, b, count(*) FROM shop.nums GROUP BY GROUPING SETS (ROLLUP (a), CUBE (b)) ORDER BY ALL

SELECT a + 1 AS x, grouping_id(a + 1) FROM shop.nums GROUP BY ROLLUP (a + 1) ORDER BY 1, 2

SELECT a, b, count(*) FROM shop.nums GROUP BY GROUPING SETS ((a), (b)) HAVING count(*) > 1 ORDER BY ALL

SELECT coalesce(dept, 'all') AS d, sum(salary) FROM shop.emp GROUP BY ROLLUP (dept) ORDER BY d, 2

SELECT a, grouping_id(c) FROM shop.nums GROUP BY CUBE (a, b)

SELECT a, count(*) FROM shop.nums GROUP BY GROUPING SETS (())
