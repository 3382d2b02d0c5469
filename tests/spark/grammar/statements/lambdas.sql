SELECT sale_id, transform(tags, t -> upper(t)) FROM shop.sale ORDER BY sale_id

SELECT sale_id, transform(tags, (t, i) -> concat(t, i)) FROM shop.sale ORDER BY sale_id

SELECT sale_id, filter(tags, t -> t LIKE 'r%'), filter(tags, (t, i) -> i > 0) FROM shop.sale ORDER BY sale_id

SELECT sale_id, exists(tags, t -> t = 'red'), forall(tags, t -> t IS NOT NULL) FROM shop.sale ORDER BY sale_id

SELECT sale_id, aggregate(tags, '', (acc, t) -> acc || coalesce(t, '?')) FROM shop.sale ORDER BY sale_id

SELECT sale_id, reduce(tags, 0, (acc, t) -> acc + length(t), acc -> acc * 10) FROM shop.sale ORDER BY sale_id

SELECT sale_id, map_filter(attrs, (k, v) -> v > 2) FROM shop.sale ORDER BY sale_id

SELECT sale_id, transform_values(attrs, (k, v) -> v * qty), transform_keys(attrs, (k, v) -> k || '!') FROM shop.sale ORDER BY sale_id

SELECT sale_id, map_zip_with(attrs, map('w', 1), (k, x, y) -> coalesce(x, 0) + coalesce(y, 0)) FROM shop.sale ORDER BY sale_id

SELECT zip_with(array(a, b), array(b, a), (x, y) -> x + y) FROM shop.nums ORDER BY a, b

SELECT array_sort(tags, (x, y) -> CASE WHEN x < y THEN 1 WHEN x > y THEN -1 ELSE 0 END) FROM shop.sale WHERE sale_id = 105

SELECT transform(sequence(1, id), x -> x * id) FROM shop.emp WHERE id < 4 ORDER BY id

SELECT transform(array(1, 2), x -> transform(array(3, 4), y -> x * y + a)) FROM shop.nums WHERE a = 2 ORDER BY b

SELECT id FROM shop.emp WHERE exists(array(1, 3, 5), x -> x = id) ORDER BY id

SELECT transform(tags, t -> nosuch) FROM shop.sale

SELECT filter(qty, q -> q > 1) FROM shop.sale

SELECT transform(tags, (a, b, c) -> a) FROM shop.sale

SELECT named_struct('x', transform(collect_list(id), i -> i + 1)) FROM shop.emp
