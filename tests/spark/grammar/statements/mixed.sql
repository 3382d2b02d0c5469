CREATE TABLE spark_catalog.default.grammar_own USING parquet AS SELECT id, name FROM shop.emp WHERE id < 4

SELECT o.name, d.city FROM spark_catalog.default.grammar_own o JOIN shop.emp e ON o.id = e.id JOIN shop.dept d ON e.dept = d.dept ORDER BY 1

INSERT INTO spark_catalog.default.grammar_own SELECT id, name FROM shop.emp WHERE id IN (TABLE shop.sale |> WHERE qty > 5 |> SELECT emp_id)

SELECT count(*) FROM spark_catalog.default.grammar_own

INSERT OVERWRITE spark_catalog.default.grammar_own WITH q AS (SELECT max(id) AS m FROM shop.emp) SELECT m, 'top' FROM q

SELECT * FROM spark_catalog.default.grammar_own

FROM shop.emp INSERT INTO spark_catalog.default.grammar_own SELECT id, name WHERE id = 1

SELECT id FROM spark_catalog.default.grammar_own UNION SELECT id FROM shop.emp EXCEPT SELECT 3 ORDER BY id

CREATE TABLE shop.copied AS SELECT o.id, e.dept FROM spark_catalog.default.grammar_own o JOIN shop.emp e USING (id)

SELECT * FROM shop.copied ORDER BY id

INSERT INTO shop.copied SELECT id, name FROM spark_catalog.default.grammar_own

SELECT count(*) FROM shop.copied

CREATE TEMP VIEW both AS SELECT e.id FROM shop.emp e JOIN spark_catalog.default.grammar_own o ON e.id = o.id

SELECT count(*) FROM both JOIN shop.sale ON both.id = sale.emp_id

CREATE VIEW spark_catalog.default.grammar_view AS SELECT max(id) AS m FROM spark_catalog.default.grammar_own

SELECT e.name FROM shop.emp e, spark_catalog.default.grammar_view v WHERE e.id = v.m

SELECT (SELECT m FROM spark_catalog.default.grammar_view) AS m, count(*) FROM shop.emp

DROP VIEW spark_catalog.default.grammar_view

SELECT e.id FROM shop.emp e JOIN spark_catalog.default.nosuch n ON e.id = n.id

DROP TABLE spark_catalog.default.grammar_own

SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, w) JOIN shop.emp USING (id) JOIN range(5) r USING (id) ORDER BY id
