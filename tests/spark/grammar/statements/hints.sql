SELECT /*+ BROADCAST(d) */ e.name FROM shop.emp e JOIN shop.dept d ON e.dept = d.dept ORDER BY 1

SELECT /*+ MERGE(e, d) */ e.name FROM shop.emp e JOIN shop.dept d ON e.dept = d.dept ORDER BY 1

SELECT /*+ SHUFFLE_HASH(emp) */ name FROM shop.emp JOIN shop.dept USING (dept) ORDER BY 1

SELECT /*+ BROADCAST(shop.dept) */ name FROM shop.emp JOIN shop.dept USING (dept) ORDER BY 1

SELECT /*+ COALESCE(1) */ count(*) FROM shop.emp

SELECT /*+ REPARTITION(2, dept) */ dept FROM shop.emp ORDER BY dept

SELECT /*+ REBALANCE */ max(id) FROM shop.emp

SELECT /*+ NOSUCHHINT(x) */ max(id) FROM shop.emp

SELECT /*+ BROADCAST(nosuch) */ max(id) FROM shop.emp

SELECT id FROM shop.emp DISTRIBUTE BY id SORT BY id

SELECT id FROM shop.emp CLUSTER BY id

SELECT /*+ REPARTITION('x') */ id FROM shop.emp
