WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r ORDER BY n

WITH RECURSIVE chain(id, name, depth) AS (
  SELECT id, name, 0 FROM shop.emp WHERE boss IS NULL
  UNION ALL SELECT e.id, e.name, c.depth + 1 FROM shop.emp e JOIN chain c ON e.boss = c.id)
SELECT * FROM chain ORDER BY depth, id

WITH RECURSIVE r(n) MAX RECURSION LEVEL 3 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 50) SELECT n FROM r

WITH RECURSIVE r(n) MAX RECURSION LEVEL 9 AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4)
SELECT n, name FROM r JOIN shop.emp ON id = n ORDER BY n

WITH RECURSIVE r AS (SELECT min(id) AS n FROM shop.emp UNION ALL SELECT n * 2 FROM r WHERE n < (SELECT max(id) FROM shop.emp)) SELECT sum(n) FROM r

WITH RECURSIVE path(id, names) AS (
  SELECT id, array(name) FROM shop.emp WHERE id = 7
  UNION ALL SELECT b.id, array_append(p.names, b.name) FROM path p JOIN shop.emp e ON e.id = p.id JOIN shop.emp b ON b.id = e.boss)
SELECT names FROM path ORDER BY size(names) DESC LIMIT 1

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 4

WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r

WITH RECURSIVE r(n) AS (SELECT n + 1 FROM r) SELECT * FROM r

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT a.n + b.n FROM r a, r b WHERE a.n < 5) SELECT * FROM r

WITH RECURSIVE r(a, b) AS (SELECT a, b FROM shop.nums WHERE a = 1 UNION ALL SELECT a + 1, b FROM r WHERE a < 3) SELECT a, count(*) FROM r GROUP BY a ORDER BY a
