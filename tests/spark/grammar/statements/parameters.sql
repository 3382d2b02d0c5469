--args {"low": 2, "d": "dev"}
SELECT name FROM shop.emp WHERE id >= :low AND dept = :d ORDER BY name

--args [3, "ops"]
SELECT name FROM shop.emp WHERE id >= ? AND dept = ? ORDER BY name

--args {"n": 2}
SELECT id FROM shop.emp ORDER BY id LIMIT :n

--args {"t": "shop.emp"}
SELECT count(*) FROM IDENTIFIER(:t)

--args {"c": "name"}
SELECT IDENTIFIER(:c) FROM shop.emp ORDER BY 1

--args {"x": 1}
FROM shop.emp |> WHERE id > :x |> AGGREGATE count(*)

--args {"x": 1}
WITH t AS (SELECT id FROM shop.emp WHERE id > :x) SELECT max(id) FROM t WHERE id < (SELECT max(id) - :x FROM shop.emp)

--args {"x": 1}
SELECT struct(id a, :x b) FROM shop.emp ORDER BY 1

--args [1, 2]
SELECT transform(array(?, ?), v -> v + id) FROM shop.emp ORDER BY id

--args {"x": 7}
SELECT :nosuch, id FROM shop.emp

--args [1]
SELECT ?, ? FROM shop.emp

--args {"a": 1, "b": "new"}
INSERT INTO shop.nosuch VALUES (:a, :b)

CREATE TABLE shop.filled (a INT, b STRING)

--args {"a": 1, "b": "new"}
INSERT INTO shop.filled VALUES (:a, :b)

--args [2, "more"]
INSERT INTO shop.filled SELECT ?, ?

--args {"low": 6}
INSERT INTO shop.filled SELECT id, name FROM shop.emp WHERE id >= :low

SELECT * FROM shop.filled ORDER BY a

--frames f: SELECT 1 AS id, 'x' AS w UNION ALL SELECT 2, 'y'
SELECT f.w, e.name FROM {f} f JOIN shop.emp e ON f.id = e.id ORDER BY 1

--frames f: SELECT id FROM shop.emp WHERE id < 3
SELECT count(*) FROM {f} JOIN shop.emp USING (id)

--frames f: SELECT id FROM shop.emp
SELECT max(id) FROM {f}

--frames f: SELECT 5 AS id
--args {"x": 5}
SELECT name FROM shop.emp WHERE id IN (SELECT id FROM {f}) AND id = :x

--args {"y": 2019}
SELECT count(*) FROM shop.emp WHERE year(hired) = :y

--args {"p": "a"}
SELECT k FROM shop.part WHERE p = :p ORDER BY k
