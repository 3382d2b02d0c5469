SELECT count(*), count(salary), count(DISTINCT dept), sum(salary), avg(salary), min(hired), max(name) FROM shop.emp

SELECT dept, sum(salary) FILTER (WHERE hired > DATE '2020-01-01') AS late, count(*) FILTER (WHERE salary IS NULL) FROM shop.emp GROUP BY dept ORDER BY dept

SELECT dept, array_sort(collect_list(name)), array_sort(collect_set(salary)) FROM shop.emp GROUP BY dept ORDER BY dept

SELECT dept, listagg(name, ',') WITHIN GROUP (ORDER BY name DESC) FROM shop.emp GROUP BY dept ORDER BY dept

SELECT dept, string_agg(DISTINCT name) WITHIN GROUP (ORDER BY name) FROM shop.emp GROUP BY dept ORDER BY dept

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY salary), percentile_disc(0.25) WITHIN GROUP (ORDER BY salary) FROM shop.emp

SELECT mode() WITHIN GROUP (ORDER BY c), median(a), percentile(b, array(0.1, 0.9)) FROM shop.nums

SELECT max_by(name, salary), min_by(name, salary) FROM shop.emp

SELECT bool_and(a > 0), bool_or(b > 2), every(a IS NOT NULL), some(c = 'z'), bit_or(a), bit_xor(b) FROM shop.nums

SELECT round(stddev(amount), 6), round(variance(amount), 6), round(corr(amount, qty), 6), round(covar_pop(amount, qty), 6),
  round(skewness(amount), 6), round(kurtosis(amount), 6) FROM shop.sale

SELECT approx_count_distinct(c), count_if(a = 1), any_value(1), try_sum(a), try_avg(b) FROM shop.nums

SELECT round(regr_slope(amount, qty), 6), round(regr_r2(amount, qty), 6), regr_count(amount, qty) FROM shop.sale

SELECT histogram_numeric(qty, 2), approx_percentile(amount, 0.5, 100) FROM shop.sale

SELECT a, count(DISTINCT b, c), sum(DISTINCT b) FROM shop.nums GROUP BY a ORDER BY a

SELECT year(hired) AS y, month(hired) AS m, count(*) FROM shop.emp GROUP BY y, m ORDER BY y, m

SELECT dept, count(*) AS n FROM shop.emp GROUP BY 1 HAVING n > 1 ORDER BY 2 DESC, 1

SELECT dept, boss, max(salary) FROM shop.emp GROUP BY ALL ORDER BY ALL

SELECT place.city, sum(amount) FROM shop.sale GROUP BY place.city ORDER BY 1

SELECT tags[0], count(*) FROM shop.sale GROUP BY try_element_at(tags, 1), tags[0]

SELECT DISTINCT dept, boss IS NULL FROM shop.emp ORDER BY 1, 2

SELECT count(*) FROM shop.emp HAVING count(*) > 3

SELECT 1 FROM shop.emp HAVING max(id) > 100

SELECT grouping(dept) FROM shop.emp GROUP BY dept

SELECT name, count(*) FROM shop.emp GROUP BY dept

SELECT dept, count(*) FROM shop.emp

SELECT sum(name) FROM shop.emp WHERE id = 1

SELECT dept FROM shop.emp GROUP BY dept HAVING name = 'Ann'

SELECT id FROM shop.emp WHERE count(*) > 1

SELECT dept FROM shop.emp GROUP BY 3

SELECT max(count(*)) FROM shop.emp GROUP BY dept

SELECT product(a) FROM shop.nums

SELECT first(name) FILTER (WHERE id = 3), last(dept, true) FILTER (WHERE id = 6) FROM shop.emp
