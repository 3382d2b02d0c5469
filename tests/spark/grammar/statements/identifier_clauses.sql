CREATE TABLE IDENTIFIER('shop.' || 'named') (a INT, b STRING)

INSERT INTO IDENTIFIER('shop.named') VALUES (1, 'x'), (2, 'y')

--args {"t": "shop.named", "a": 3}
INSERT INTO IDENTIFIER(:t) VALUES (:a, 'z')

--args {"t": "shop.named"}
INSERT INTO IDENTIFIER(:t) SELECT id, name FROM shop.emp WHERE id = 4

SELECT * FROM IDENTIFIER('shop.named') ORDER BY a

--args {"s": "shop", "t": "named", "c": "b"}
SELECT n.IDENTIFIER(:c) FROM IDENTIFIER(:s || '.' || :t) AS n ORDER BY 1

DESCRIBE IDENTIFIER('shop.named')

ALTER TABLE IDENTIFIER('shop.named') ADD COLUMN c INT

SHOW COLUMNS IN IDENTIFIER('shop.named')

--args {"t": "shop.named"}
ALTER TABLE IDENTIFIER(:t) SET TBLPROPERTIES ('k' = 'v')

--args {"t": "shop.view_named"}
CREATE VIEW IDENTIFIER(:t) AS SELECT a FROM shop.named

CREATE OR REPLACE TEMP VIEW IDENTIFIER('temp_named') AS SELECT a FROM IDENTIFIER('shop.named')

SELECT sum(a) FROM temp_named

TRUNCATE TABLE IDENTIFIER('shop.named')

SELECT count(*) FROM shop.named

--args {"t": "shop.named"}
DROP TABLE IDENTIFIER(:t)

DROP TABLE IDENTIFIER('shop.named')

USE IDENTIFIER('shop')

SELECT IDENTIFIER('emp.name') FROM emp ORDER BY 1 LIMIT 1

SELECT IDENTIFIER('max')(IDENTIFIER('id')) FROM IDENTIFIER('emp')

SELECT * FROM IDENTIFIER('emp') e JOIN IDENTIFIER('dept') d ON e.dept = d.dept WHERE e.id = 1

SELECT IDENTIFIER('no such') FROM emp

SELECT IDENTIFIER(name) FROM emp
