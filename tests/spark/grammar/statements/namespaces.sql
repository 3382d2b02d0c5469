CREATE NAMESPACE grammar_extra COMMENT 'more'

CREATE DATABASE IF NOT EXISTS grammar_extra

CREATE SCHEMA grammar_extra

SHOW NAMESPACES LIKE '*grammar_e*'

SHOW DATABASES LIKE '*grammar_e*'

USE grammar_extra

SELECT current_schema()

CREATE TABLE t (a INT)

SHOW TABLES

SHOW TABLES IN grammar_extra LIKE 'x*'

SELECT count(*) FROM grammar_extra.t

SELECT e.name FROM shop.emp e LEFT JOIN t ON e.id = t.a WHERE e.id < 3 ORDER BY 1

DROP NAMESPACE grammar_extra

DROP TABLE t

USE shop

DROP NAMESPACE grammar_extra

DROP NAMESPACE grammar_extra

DROP DATABASE IF EXISTS grammar_extra

USE nosuch_namespace

USE DATABASE shop

SELECT count(*) FROM emp
