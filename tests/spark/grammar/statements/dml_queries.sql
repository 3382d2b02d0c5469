CREATE TABLE shop.t AS SELECT * FROM shop.emp

--plain nothing
DELETE FROM shop.t WHERE exists(array(1, 2), x -> x = id) AND struct(id a, name b).a = 1

--plain SELECT id, 'by a lambda' AS how FROM shop.emp WHERE id > 1
SELECT id, 'by a lambda' AS how FROM shop.t

--plain nothing
UPDATE shop.t SET name = IDENTIFIER('upper')(name) WHERE id = 2

--plain SELECT 2 AS id, 'BOB' AS name
SELECT id, name FROM shop.t WHERE id = 2

--plain nothing
UPDATE shop.t SET salary = (FROM shop.emp |> AGGREGATE max(salary)) WHERE shop.t.id = 3

--plain SELECT max(salary) AS salary FROM shop.emp
SELECT salary FROM shop.t WHERE id = 3

--plain nothing
MERGE INTO shop.t AS t USING (WITH RECURSIVE r(n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r) s ON t.id = s.n
WHEN MATCHED THEN UPDATE SET boss = 0

--plain SELECT id FROM shop.emp WHERE id IN (4, 5)
SELECT id FROM shop.t WHERE boss = 0

--args {"low": 5, "b": 9}
--plain nothing
MERGE INTO shop.t USING (SELECT id FROM shop.emp WHERE id > :low) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET boss = :b

--plain SELECT id FROM shop.emp WHERE id > 5
SELECT id FROM shop.t WHERE boss = 9

--plain nothing
MERGE INTO IDENTIFIER('shop.t') AS t USING shop.sale s ON t.id = s.emp_id AND s.sale_id = 102 WHEN MATCHED THEN DELETE

--plain nothing
DELETE FROM shop.T WHERE Id = 3

--plain SELECT id, 'in another case' AS how FROM shop.emp WHERE id > 3
SELECT id, 'in another case' AS how FROM shop.t

DECLARE limit_of INT DEFAULT 6

--plain nothing
DELETE FROM shop.t WHERE id >= limit_of

--plain SELECT id, 'by a variable' AS how FROM shop.emp WHERE id IN (4, 5)
SELECT id, 'by a variable' AS how FROM shop.t

--plain nothing
EXECUTE IMMEDIATE 'DELETE FROM shop.t WHERE id = ?' USING 4

--plain SELECT 1L AS n
SELECT count(*) AS n FROM shop.t

--plain nothing
BEGIN
  DELETE FROM shop.t WHERE id = 5;
  INSERT INTO shop.t (id) VALUES (77);
END

--plain SELECT 77 AS id
SELECT max(id) AS id FROM shop.t

USE shop

--plain nothing
UPDATE t SET dept = 'x' WHERE t.id = 77

--plain nothing
DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM emp WHERE emp.id = t.id)

--plain nothing
DROP TABLE t
