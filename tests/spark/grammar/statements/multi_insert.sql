CREATE TABLE shop.one (id INT, name STRING)

CREATE TABLE shop.two (id INT, name STRING)

FROM shop.emp INSERT INTO shop.one SELECT id, name WHERE id < 3

FROM shop.emp INSERT INTO shop.one SELECT id, name WHERE id = 3 INSERT INTO shop.two SELECT id, name WHERE id > 5

SELECT * FROM shop.one ORDER BY id

SELECT * FROM shop.two ORDER BY id

FROM (SELECT id, name FROM shop.emp WHERE id < 3) t
INSERT OVERWRITE shop.one SELECT id + 10, name
INSERT INTO shop.two SELECT id + 20, upper(name)

SELECT * FROM shop.one ORDER BY id

SELECT * FROM shop.two ORDER BY id

WITH t AS (SELECT 77 AS id, 'cte' AS name) FROM t INSERT INTO shop.one SELECT * INSERT INTO shop.two SELECT *

SELECT count(*) FROM shop.one WHERE name = 'cte'

FROM shop.emp INSERT INTO shop.one SELECT nosuch, name INSERT INTO shop.two SELECT id, name

FROM shop.emp INSERT INTO shop.nosuch SELECT id INSERT INTO shop.two SELECT id, name

SELECT count(*) FROM shop.two

FROM shop.emp INSERT INTO shop.one SELECT max(id), dept GROUP BY dept INSERT INTO shop.two SELECT id, name ORDER BY id LIMIT 1

SELECT count(*) FROM shop.one

SELECT count(*) FROM shop.two

DROP TABLE shop.one

DROP TABLE shop.two
