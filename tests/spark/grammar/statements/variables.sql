DECLARE VARIABLE most INT DEFAULT 3

SELECT name FROM shop.emp WHERE id <= most ORDER BY name

SET VAR most = (SELECT max(id) FROM shop.emp)

SELECT most

SELECT name FROM shop.emp WHERE id = session.most

SET VARIABLE most = most - 1

SELECT name FROM shop.emp WHERE id = system.session.most

DECLARE OR REPLACE lowest = (SELECT min(salary) FROM shop.emp)

SELECT lowest, typeof(lowest)

DECLARE OR REPLACE VARIABLE word STRING

SET VAR (word, most) = (SELECT name, id FROM shop.emp WHERE id = 5)

SELECT word, most

SET VAR (word, most) = (SELECT name, id FROM shop.emp)

SET VAR (word, most) = (SELECT name, id FROM shop.emp WHERE id = 99)

SELECT word, most

SET VAR word = DEFAULT

SELECT word IS NULL

DECLARE VARIABLE most INT

SET VAR nosuch = 1

SELECT id AS most, most + 1 FROM shop.emp WHERE id = 1

WITH t AS (SELECT most AS m FROM shop.emp LIMIT 1) SELECT * FROM t

DROP TEMPORARY VARIABLE lowest

DROP TEMPORARY VARIABLE IF EXISTS lowest

SELECT lowest FROM shop.emp

SET VAR most = 'not a number'

DECLARE tab = 'shop.emp'

SELECT count(*) FROM IDENTIFIER(tab)

SELECT count(*) FROM shop.emp WHERE id > (SELECT most FROM shop.dept LIMIT 1)
