DESCRIBE shop.emp

DESC TABLE shop.sale

DESCRIBE shop.sale place

DESCRIBE shop.emp name

DESCRIBE shop.emp nosuch

DESCRIBE TABLE shop.nosuch

DESCRIBE QUERY SELECT id, name || 'x' AS n, count(*) OVER () FROM shop.emp

DESCRIBE SELECT place.zip, tags FROM shop.sale

DESC QUERY WITH t AS (SELECT dept FROM shop.dept) SELECT * FROM t

DESCRIBE QUERY TABLE shop.dept

DESCRIBE FROM shop.dept SELECT city

DESCRIBE shop.part

DESCRIBE shop.part PARTITION (p = 'a')

DESCRIBE shop.part PARTITION (p = 'nosuch')

DESCRIBE shop.emp PARTITION (dept = 'dev')

DESCRIBE FUNCTION upper

DESCRIBE QUERY SELECT nosuch FROM shop.emp

USE shop

DESCRIBE emp

DESC emp id
