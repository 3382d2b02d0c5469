-- The tables that the statements of all other files read. Whatever a file changes it creates itself.

CREATE TABLE shop.emp (id INT, name STRING, dept STRING, salary DECIMAL(8, 2), hired DATE, boss INT)

INSERT INTO shop.emp VALUES
  (1, 'Ann', 'dev', 5200.00, DATE '2019-03-01', NULL),
  (2, 'Bob', 'dev', 4100.50, DATE '2020-07-15', 1),
  (3, 'Cid', 'ops', 3900.00, DATE '2021-01-10', 1),
  (4, 'Dot', 'ops', 4100.50, DATE '2021-01-10', 3),
  (5, 'Eve', 'law', 6100.00, DATE '2018-11-30', 1),
  (6, 'Fay', NULL, 2500.25, NULL, 5),
  (7, 'Gus', 'dev', NULL, DATE '2023-05-05', 2)

CREATE TABLE shop.dept (dept STRING, city STRING, budget BIGINT)

INSERT INTO shop.dept VALUES ('dev', 'Oslo', 100), ('ops', 'Rome', 80), ('law', 'Oslo', 30), ('art', 'Bern', NULL)

CREATE TABLE shop.sale (
  sale_id BIGINT, emp_id INT, ts TIMESTAMP, amount DOUBLE, qty INT,
  tags ARRAY<STRING>, attrs MAP<STRING, INT>, place STRUCT<city: STRING, zip: INT>)

INSERT INTO shop.sale VALUES
  (100, 1, TIMESTAMP '2026-01-01 08:05:00', 10.5, 1, array('new', 'red'), map('w', 3, 'h', 4), named_struct('city', 'Oslo', 'zip', 10)),
  (101, 1, TIMESTAMP '2026-01-01 08:40:00', 20.25, 2, array('red'), map('w', 1), named_struct('city', 'Rome', 'zip', 20)),
  (102, 2, TIMESTAMP '2026-01-01 09:10:00', 5.0, 5, array(), map(), named_struct('city', 'Oslo', 'zip', NULL)),
  (103, 3, TIMESTAMP '2026-01-02 23:59:59', 7.75, 1, NULL, NULL, NULL),
  (104, 3, TIMESTAMP '2026-01-03 00:00:00', 100.0, 4, array('old', NULL), map('h', NULL), named_struct('city', NULL, 'zip', 30)),
  (105, 5, TIMESTAMP '2026-02-01 12:00:00', 64.0, 8, array('red', 'old', 'new'), map('w', 9, 'd', 2), named_struct('city', 'Bern', 'zip', 40)),
  (106, 9, NULL, 1.5, NULL, array('odd'), map('x', 0), named_struct('city', 'Rome', 'zip', 20)),
  (107, NULL, TIMESTAMP '2026-02-01 12:30:00', NULL, 3, array('new'), map('w', 2), named_struct('city', 'Rome', 'zip', 21))

CREATE TABLE shop.nums (a INT, b INT, c STRING)

INSERT INTO shop.nums VALUES
  (1, 1, 'x'), (1, 2, 'y'), (2, 1, 'x'), (2, NULL, 'z'), (3, 3, NULL), (NULL, 2, 'y'), (1, 1, 'x')

CREATE TABLE shop.part (k INT, v STRING, p STRING) PARTITIONED BY (p)

INSERT INTO shop.part VALUES (1, 'one', 'a'), (2, 'two', 'a'), (3, 'three', 'b'), (4, NULL, 'b'), (5, 'five', 'c')

CREATE TABLE shop.doc (id INT, body STRING)

INSERT INTO shop.doc VALUES
  (1, '{"a": 1, "b": [1, 2], "c": {"d": "x"}}'), (2, '{"a": null, "b": []}'), (3, 'not json'), (4, NULL)
