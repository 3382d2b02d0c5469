SELECT a + b, a - b, a * b, a / b, a DIV b, a % b, -a, +a, ~a, a & b, a | b, a ^ b FROM shop.nums ORDER BY ALL

SELECT a = b, a <> b, a != b, a <=> b, a < b, a <= b, NOT a > b FROM shop.nums ORDER BY ALL

SELECT a IS NULL, b IS NOT NULL, a IS DISTINCT FROM b, (a > 1) IS TRUE, (b > 1) IS NOT FALSE FROM shop.nums ORDER BY ALL

SELECT CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' END, CASE WHEN b > 1 THEN b ELSE 0 END FROM shop.nums ORDER BY ALL

SELECT CAST(a AS STRING), a::DOUBLE, try_cast(c AS INT), int(b) FROM shop.nums ORDER BY ALL

SELECT coalesce(a, b, 0), nvl(b, -1), nullif(a, 1), ifnull(c, '?'), if(a > 1, 'big', 'small') FROM shop.nums ORDER BY ALL

SELECT a BETWEEN 1 AND 2, a NOT BETWEEN b AND 3, a IN (1, 3), c NOT IN ('x', 'y') FROM shop.nums ORDER BY ALL

SELECT place.city, place['zip'], tags[0], element_at(tags, -1), attrs['w'], attrs.w FROM shop.sale WHERE sale_id = 105

SELECT size(tags), cardinality(attrs), map_keys(attrs), map_values(attrs), map_entries(attrs) FROM shop.sale ORDER BY sale_id

SELECT array(a, b), map(c, a), struct(a, b), named_struct('x', a), (a, b) FROM shop.nums WHERE c = 'z'

SELECT substring(name FROM 2 FOR 1), trim(BOTH 'n' FROM name), position('n' IN name), overlay(name PLACING 'zz' FROM 2) FROM shop.emp ORDER BY id

SELECT name || '-' || dept, concat_ws('/', name, dept), lpad(name, 5, '*'), format_string('%s!', name) FROM shop.emp ORDER BY id

SELECT get_json_object(body, '$.c.d'), from_json(body, 'a INT, b ARRAY<INT>'), to_json(struct(id)) FROM shop.doc WHERE id <> 3 ORDER BY id

SELECT try_parse_json(body):a::INT, try_parse_json(body):c.d::STRING FROM shop.doc ORDER BY id

SELECT schema_of_json('{"a": 1}'), schema_of_variant(parse_json('[1]')) FROM shop.doc WHERE id = 1

SELECT round(salary, -2), floor(salary), ceil(salary), sqrt(id), power(id, 2), greatest(id, boss), least(id, boss) FROM shop.emp ORDER BY id

SELECT hash(name), md5(name), sha2(name, 256), xxhash64(id, name) FROM shop.emp ORDER BY id

SELECT with_x.x FROM (SELECT named_struct('x', id) AS with_x FROM shop.emp) ORDER BY 1

SELECT typeof(a), typeof(a + 1L), typeof(a / b), typeof(struct(a)) FROM shop.nums WHERE c = 'z'

SELECT 1 / (a - a) FROM shop.nums

SELECT try_divide(1, a - a), try_add(a, 2147483647) FROM shop.nums ORDER BY ALL

SELECT a + 2147483647 FROM shop.nums WHERE a = 1

SELECT CAST(c AS INT) FROM shop.nums

SELECT element_at(tags, 9) FROM shop.sale WHERE sale_id = 100

SELECT upper(id, name) FROM shop.emp

SELECT nosuch_function(id) FROM shop.emp

SELECT place.nosuch FROM shop.sale

SELECT name.first FROM shop.emp

SELECT id + hired FROM shop.emp WHERE name

SELECT raise_error('stop') FROM shop.emp WHERE id = 1

SELECT assert_true(id > 1) FROM shop.emp

SELECT current_date() = current_date(), user() IS NOT NULL FROM shop.emp WHERE id = 1

SELECT input_file_name() <> '' FROM shop.emp WHERE id = 1

SELECT count(DISTINCT monotonically_increasing_id()), count(DISTINCT uuid()) FROM shop.emp

SELECT _metadata.file_name IS NOT NULL FROM shop.emp WHERE id = 1
