SELECT name FROM shop.emp WHERE name COLLATE UTF8_LCASE = 'ann'

SELECT name FROM shop.emp ORDER BY name COLLATE UNICODE_CI DESC

SELECT count(*) FROM shop.emp e JOIN shop.dept d ON e.dept COLLATE UTF8_LCASE = upper(d.dept)

SELECT dept COLLATE UTF8_LCASE AS d, count(*) FROM shop.emp GROUP BY 1 ORDER BY 1

SELECT collation(name), collation(name COLLATE UNICODE) FROM shop.emp WHERE id = 1

SELECT name COLLATE NOSUCH FROM shop.emp

SELECT name COLLATE UNICODE = dept COLLATE UTF8_LCASE FROM shop.emp

SELECT contains(name COLLATE UTF8_LCASE, 'AN'), startswith(name, 'A') FROM shop.emp ORDER BY id

CREATE TABLE shop.coll (a STRING COLLATE UTF8_LCASE)

INSERT INTO shop.coll VALUES ('A'), ('b')

SELECT a FROM shop.coll WHERE a = 'a'

SELECT name FROM shop.emp WHERE name ILIKE 'a%' OR name RLIKE '^[CD]' OR name LIKE ANY ('%ve', 'F__') ORDER BY 1

SELECT name FROM shop.emp WHERE name NOT LIKE ALL ('A%', '%b') ORDER BY 1
