SELECT IDENTIFIER('name') FROM shop.emp ORDER BY id

SELECT name FROM IDENTIFIER('shop.emp') ORDER BY name

SELECT name FROM IDENTIFIER('shop' || '.' || 'emp') WHERE IDENTIFIER('id') > 5 ORDER BY name

SELECT IDENTIFIER('upper')(name) FROM shop.emp ORDER BY 1

SELECT e.IDENTIFIER('name') FROM shop.emp e ORDER BY 1

SELECT `name`, `emp`.`dept` FROM `shop`.`emp` ORDER BY `id`

SELECT id AS `a b`, name AS `c.d` FROM shop.emp WHERE id = 1

SELECT `a b` FROM (SELECT id AS `a b` FROM shop.emp) ORDER BY `a b`

SELECT NAME, Id FROM shop.emp ORDER BY ID

SELECT name FROM SHOP.EMP ORDER BY name

SELECT Emp.Name FROM shop.Emp ORDER BY 1

SELECT lake.shop.emp.name FROM lake.shop.emp ORDER BY 1

SELECT shop.emp.name FROM lake.shop.emp ORDER BY 1

SELECT emp.name FROM lake.shop.emp ORDER BY 1

SELECT x.* FROM shop.emp AS x WHERE x.id = 2

SELECT x.one FROM shop.emp AS x(one, two, three, four, five, six) WHERE one < 3 ORDER BY one

SELECT * FROM shop.emp AS x(one, two)

SELECT * EXCEPT (salary, hired) FROM shop.emp ORDER BY id

SELECT * EXCEPT (nosuch) FROM shop.emp

SELECT s.* EXCEPT (tags, attrs, place.zip) FROM shop.sale s ORDER BY sale_id

SELECT place.* FROM shop.sale ORDER BY 1, 2

SELECT id AS `select`, name AS `from` FROM shop.emp WHERE id = 3

SELECT id name, name id FROM shop.emp ORDER BY id

SELECT struct(id x, name y) FROM shop.emp ORDER BY 1

SELECT emp.id FROM shop.emp, shop.emp AS emp2 WHERE emp.id = emp2.boss ORDER BY 1

SELECT name FROM shop.`emp`.`nosuch`

SELECT name FROM `shop.emp`

SELECT name FROM IDENTIFIER('shop.no such')

SELECT name FROM IDENTIFIER(NULL)

SELECT name FROM nosuchdb.emp

SELECT nosuchdb.emp.name FROM shop.emp

SELECT current_schema() IS NOT NULL FROM shop.emp WHERE id = 1

USE shop

SELECT current_schema(), current_database(), current_catalog()

SELECT shop.emp.name, emp.id FROM emp ORDER BY id LIMIT 2

SELECT shop.nums.a FROM nums JOIN shop.emp ON shop.emp.id = shop.nums.a ORDER BY 1

SELECT name FROM EMP WHERE Emp.ID = 1
