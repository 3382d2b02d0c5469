SELECT sale_id, tag FROM shop.sale LATERAL VIEW explode(tags) t AS tag ORDER BY sale_id, tag

SELECT sale_id, tag FROM shop.sale LATERAL VIEW OUTER explode(tags) t AS tag ORDER BY sale_id, tag

SELECT sale_id, pos, tag FROM shop.sale LATERAL VIEW posexplode(tags) t AS pos, tag ORDER BY sale_id, pos

SELECT sale_id, k, v FROM shop.sale LATERAL VIEW explode(attrs) t AS k, v ORDER BY sale_id, k

SELECT sale_id, explode(attrs) FROM shop.sale ORDER BY sale_id, key

SELECT sale_id, explode_outer(tags) AS tag FROM shop.sale ORDER BY sale_id, tag

SELECT id, x, y FROM shop.emp LATERAL VIEW explode(array(id, id * 10)) t AS x LATERAL VIEW explode(array(x, x + 1)) u AS y WHERE id < 3 ORDER BY id, x, y

SELECT * FROM explode(array(1, 2, 3))

SELECT * FROM range(2, 8, 3)

SELECT id, e.* FROM shop.emp, LATERAL explode(array(name, dept)) AS e(word) ORDER BY id, word

SELECT sale_id, s.* FROM shop.sale, LATERAL inline(array(place, named_struct('city', 'extra', 'zip', 0))) AS s ORDER BY sale_id, zip

SELECT stack(2, id, name, boss, dept) FROM shop.emp ORDER BY 1, 2

SELECT inline(array(place)) FROM shop.sale ORDER BY 1, 2

SELECT d.id, j.* FROM shop.doc d, LATERAL json_tuple(d.body, 'a', 'c') AS j ORDER BY d.id

SELECT posexplode(sequence(1, 3))

SELECT explode(id) FROM shop.emp

SELECT explode(tags), explode(attrs) FROM shop.sale

SELECT * FROM nosuch_function(1)

SELECT * FROM explode(TABLE(shop.emp))

SELECT * FROM shop.sale s JOIN LATERAL explode(s.tags) AS t(tag) ON t.tag <> 'red' ORDER BY sale_id, tag

SELECT TRANSFORM (a, b) USING 'cat' AS (x STRING, y STRING) FROM shop.nums

MAP a, b USING 'cat' AS (x STRING, y STRING) FROM shop.nums

FROM shop.nums REDUCE a, b USING 'cat' AS (x STRING, y STRING)

REDUCE a, b USING 'cat' AS (x STRING, y STRING) FROM shop.nums
