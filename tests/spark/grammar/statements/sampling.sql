SELECT count(*) FROM shop.emp TABLESAMPLE (100 PERCENT)

SELECT count(*) FROM shop.emp TABLESAMPLE (3 ROWS)

SELECT count(*) FROM shop.emp TABLESAMPLE (0 PERCENT) REPEATABLE (7)

SELECT count(*) FROM shop.emp TABLESAMPLE (BUCKET 4 OUT OF 4) AS e WHERE e.id > 99

SELECT id FROM shop.emp LIMIT 0

SELECT id FROM shop.emp ORDER BY id LIMIT 3 OFFSET 2

SELECT id FROM shop.emp ORDER BY id OFFSET 5

SELECT id FROM shop.emp ORDER BY id LIMIT ALL

SELECT id FROM shop.emp ORDER BY id LIMIT 1 + 1

SELECT id FROM shop.emp LIMIT -1

SELECT id FROM shop.emp LIMIT id

SELECT id FROM shop.emp TABLESAMPLE (200 PERCENT)

SELECT name FROM shop.emp ORDER BY salary DESC NULLS FIRST, name ASC

SELECT name FROM shop.emp ORDER BY length(name), substr(name, 2)

SELECT name, dept FROM shop.emp ORDER BY ALL DESC

SELECT name FROM shop.emp ORDER BY nosuch

SELECT name FROM shop.emp ORDER BY 2
