SELECT FROM shop.emp

SELECT * FROM

SELECT * FROM shop.emp WHERE

SELECT * FROM shop.emp GROUP

SELECT id name extra FROM shop.emp

SELEC id FROM shop.emp

SELECT id FROM shop.emp,

SELECT (id FROM shop.emp

SELECT id FROM shop.emp)

SELECT * FROM shop.nosuch

SELECT * FROM nosuchdb.nosuch

SELECT * FROM nosuchcat.shop.emp

SELECT nosuch FROM shop.emp

SELECT e.nosuch FROM shop.emp e

SELECT nosuch.id FROM shop.emp

SELECT nosuch.* FROM shop.emp

SELECT id, id FROM shop.emp ORDER BY nosuch

SELECT x FROM (SELECT id AS x, name AS x FROM shop.emp)

SELECT id FROM shop.emp e, shop.emp f

SELECT 1 + 'x' FROM shop.emp

SELECT sum(id) + id FROM shop.emp

SELECT id FROM shop.emp WHERE max(id) = 1

SELECT explode(array(id)) + 1 FROM shop.emp

SELECT id FROM shop.emp UNION SELECT id, name FROM shop.emp

SELECT count(id, DISTINCT name) FROM shop.emp

SELECT cast(id AS NOSUCH) FROM shop.emp

SELECT * FROM shop.emp VERSION AS OF

SELECT * FROM VALUES (1), (2, 3) JOIN shop.emp

SELECT id FROM shop.emp ORDER BY

SELECT id FROM shop.emp LIMIT 'x'

SELECT id FROM shop.emp HAVING id > 1

SELECT rank() FROM shop.emp

SELECT id FROM shop.emp WHERE id IN ()

SELECT `id FROM shop.emp

INSERT INTO shop.emp

INSERT INTO shop.emp SELECT

DELETE shop.emp

UPDATE shop.emp id = 1

CREATE TABLE shop.emp

ALTER TABLE shop.emp NONSENSE

DROP shop.emp

DESCRIBE

GRANT SELECT ON shop.emp TO somebody

SELECT id FROM STREAM shop.emp

SELECT id FROM STREAM(shop.emp)

SELECT date 'nonsense' FROM shop.emp

SELECT named_struct('a') FROM shop.emp

SELECT array(1, 'x', array()) FROM shop.emp

SELECT id FROM shop.emp TABLESAMPLE (BUCKET 0 OUT OF 0)

SELECT * FROM shop.emp FULL SEMI JOIN shop.dept
