CREATE TABLE shop.t (a INT, b STRING, c DOUBLE)

INSERT INTO shop.t VALUES (1, 'x', 1.5), (2, NULL, NULL)

INSERT INTO TABLE shop.t SELECT id, name, salary FROM shop.emp WHERE id = 3

INSERT INTO shop.t (b, a) VALUES ('swapped', 4)

INSERT INTO shop.t (c) SELECT 9.5

INSERT INTO shop.t BY NAME SELECT 'named' AS b, 5 AS a

INSERT INTO shop.t BY NAME SELECT 0.5 AS c, 6 AS A, 'other' AS B

INSERT INTO shop.t TABLE shop.t

INSERT INTO shop.t WITH q AS (SELECT 7 AS i) SELECT i, 'cte', 0 FROM q

WITH q AS (SELECT 8 AS i) INSERT INTO shop.t SELECT i, 'cte', 0 FROM q

INSERT INTO shop.t FROM shop.emp SELECT id, dept, 0.0 WHERE id = 7

INSERT INTO shop.t VALUES (DEFAULT, 'd', DEFAULT)

SELECT * FROM shop.t ORDER BY ALL

INSERT INTO shop.t VALUES (1, 2)

INSERT INTO shop.t VALUES (1, 'x', 1.5, 2)

INSERT INTO shop.t (a, nosuch) VALUES (1, 2)

INSERT INTO shop.t (a, a) VALUES (1, 2)

INSERT INTO shop.t VALUES ('not a number', 'x', 1.5)

INSERT INTO shop.t VALUES (3000000000, 'x', 1.5)

INSERT INTO shop.t SELECT array(1), 'x', 1.0

INSERT INTO shop.t BY NAME SELECT 1 AS nosuch

INSERT INTO shop.t BY NAME SELECT 1 AS a, 2 AS a

INSERT INTO shop.t SELECT nosuch FROM shop.emp

INSERT INTO shop.nosuch VALUES (1)

SELECT count(*) FROM shop.t

INSERT OVERWRITE shop.t SELECT id, name, NULL FROM shop.emp WHERE id < 3

INSERT OVERWRITE TABLE shop.t VALUES (1, 'only', 0.0)

SELECT * FROM shop.t

TRUNCATE TABLE shop.t

SELECT count(*) FROM shop.t

DROP TABLE shop.t

CREATE TABLE shop.byp (k INT, v STRING, p STRING) PARTITIONED BY (p)

INSERT INTO shop.byp PARTITION (p = 'a') VALUES (1, 'one')

INSERT INTO shop.byp PARTITION (p) SELECT k, v, p FROM shop.part WHERE p <> 'a'

INSERT INTO shop.byp PARTITION (p = 'z') (v, k) VALUES ('nine', 9)

INSERT OVERWRITE shop.byp PARTITION (p = 'b') SELECT 10, 'ten'

SELECT * FROM shop.byp ORDER BY k

INSERT INTO shop.byp PARTITION (nosuch = 1) VALUES (1, 'x')

INSERT INTO shop.byp PARTITION (p = 'a') VALUES (1, 'x', 'y')

SET spark.sql.sources.partitionOverwriteMode = dynamic

INSERT OVERWRITE shop.byp SELECT 20, 'twenty', 'a'

SELECT * FROM shop.byp ORDER BY k

RESET spark.sql.sources.partitionOverwriteMode

SHOW PARTITIONS shop.byp

SHOW PARTITIONS shop.byp PARTITION (p = 'a')

TRUNCATE TABLE shop.byp PARTITION (p = 'a')

SELECT p, count(*) FROM shop.byp GROUP BY p ORDER BY p

INSERT OVERWRITE shop.byp SELECT 1, 'all', 'q'

SELECT * FROM shop.byp ORDER BY k

DROP TABLE shop.byp
