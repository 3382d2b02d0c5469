CREATE TABLE shop.t AS SELECT * FROM shop.emp

--plain nothing
DELETE FROM shop.t WHERE id = 1

--plain SELECT * FROM shop.emp WHERE id <> 1
SELECT * FROM shop.t

--plain nothing
DELETE FROM shop.t AS x WHERE x.dept IN (SELECT dept FROM shop.dept WHERE city = 'Rome')

--plain SELECT id FROM shop.emp WHERE id NOT IN (1, 3, 4)
SELECT id FROM shop.t

--plain nothing
UPDATE shop.t SET salary = salary + 1, name = lower(name) WHERE id = 2

--plain SELECT 'bob' AS name, CAST(salary + 1 AS DECIMAL(8, 2)) AS salary FROM shop.emp WHERE id = 2
SELECT name, salary FROM shop.t WHERE id = 2

--plain nothing
UPDATE shop.t x SET boss = (SELECT max(id) FROM shop.emp) WHERE EXISTS (SELECT 1 FROM shop.sale s WHERE s.emp_id = x.id)

--plain SELECT id, if(id IN (2, 5), 7, boss) AS boss FROM shop.emp WHERE id NOT IN (1, 3, 4)
SELECT id, boss FROM shop.t

--plain nothing
UPDATE shop.t SET dept = DEFAULT WHERE id = 7

--plain SELECT CAST(NULL AS STRING) AS dept
SELECT dept FROM shop.t WHERE id = 7

--args {"x": 7}
--plain nothing
DELETE FROM shop.t WHERE id = :x

--args ["ROB", 2]
--plain nothing
UPDATE shop.t SET name = ? WHERE id = ?

--plain SELECT 'ROB' AS name
SELECT name FROM shop.t WHERE id = 2

--plain SELECT 0 AS n
SELECT CAST(count(*) AS INT) AS n FROM shop.t WHERE id = 7

--plain nothing
MERGE INTO shop.t USING shop.emp s ON t.id = s.id
WHEN MATCHED AND s.id = 2 THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name || '2'
WHEN NOT MATCHED THEN INSERT *

--plain SELECT id, if(id IN (5, 6), name || '2', name) AS name FROM shop.emp WHERE id <> 2
SELECT id, name FROM shop.t

--plain nothing
MERGE INTO shop.t AS t USING (SELECT 50 AS id, 'new' AS name UNION ALL SELECT 1, 'one') AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET t.name = s.name, t.salary = 0
WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)
WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE
WHEN NOT MATCHED BY SOURCE THEN UPDATE SET dept = 'none'

--plain SELECT id, CASE id WHEN 1 THEN 'one' WHEN 6 THEN 'Fay2' ELSE name END AS name, if(id = 1, dept, 'none') AS dept FROM shop.emp WHERE id NOT IN (2, 5) UNION ALL SELECT 50, 'new', NULL
SELECT id, name, dept FROM shop.t

--plain nothing
WITH q AS (SELECT 50 AS id) DELETE FROM shop.t WHERE id IN (SELECT id FROM q)

--plain nothing
MERGE INTO shop.t USING (FROM shop.emp |> WHERE id = 3) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *

--plain SELECT * FROM shop.emp WHERE id = 3
SELECT * FROM shop.t WHERE id = 3

--plain nothing
DELETE FROM shop.t WHERE id IN (TABLE shop.sale |> SELECT emp_id)

--plain SELECT id FROM shop.emp WHERE id IN (4, 6, 7)
SELECT id FROM shop.t

--plain nothing
DELETE FROM shop.t

--plain SELECT count(*) FROM shop.emp WHERE false
SELECT count(*) FROM shop.t

--plain nothing
CREATE TABLE shop.nested AS SELECT sale_id, place, tags FROM shop.sale

--plain nothing
UPDATE shop.nested SET place.zip = 99 WHERE sale_id = 100

--plain SELECT named_struct('city', 'Oslo', 'zip', 99) AS place
SELECT place FROM shop.nested WHERE sale_id = 100

DELETE FROM shop.t WHERE nosuch = 1

DELETE FROM shop.nosuch WHERE id = 1

UPDATE shop.t SET nosuch = 1

UPDATE shop.t SET id = max(id)

MERGE INTO shop.t USING shop.nosuch s ON t.id = s.id WHEN MATCHED THEN DELETE

MERGE INTO shop.t USING shop.emp s ON t.id = s.nosuch WHEN MATCHED THEN DELETE

MERGE INTO shop.t USING shop.emp s ON t.id = s.id

DELETE FROM shop.t WHERE id =

--plain nothing
DROP TABLE shop.nested

DROP TABLE shop.t
