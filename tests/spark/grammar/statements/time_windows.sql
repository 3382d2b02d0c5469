SELECT window.start, count(*) FROM shop.sale GROUP BY window(ts, '1 hour') ORDER BY 1

SELECT window.start, window.end, sum(amount) FROM shop.sale GROUP BY window(ts, '2 hours', '1 hour') ORDER BY 1

SELECT window(ts, '1 day', '1 day', '6 hours') AS w, max(qty) FROM shop.sale GROUP BY 1 ORDER BY w.start

SELECT session_window.start, session_window.end, count(*) FROM shop.sale GROUP BY session_window(ts, '45 minutes') ORDER BY 1

SELECT emp_id, session_window(ts, '1 hour').start, count(*) FROM shop.sale GROUP BY emp_id, session_window(ts, '1 hour') ORDER BY 1, 2

SELECT window_time(window), n FROM (SELECT window, count(*) AS n FROM shop.sale GROUP BY window(ts, '1 day')) ORDER BY 1

SELECT date_trunc('hour', ts) AS h, count(*) FROM shop.sale GROUP BY h ORDER BY h

SELECT EXTRACT(HOUR FROM ts), date_part('dow', ts), ts::DATE FROM shop.sale ORDER BY sale_id

SELECT ts + INTERVAL '1 2:03' DAY TO MINUTE, ts - INTERVAL 3 MONTHS FROM shop.sale ORDER BY sale_id

SELECT max(ts) - min(ts), datediff(DAY, min(ts), max(ts)), timestampadd(HOUR, 1, min(ts)) FROM shop.sale

SELECT hired + 30, add_months(hired, 1), last_day(hired), months_between(DATE '2026-01-01', hired) FROM shop.emp ORDER BY id

SELECT to_utc_timestamp(ts, 'Europe/Oslo'), date_format(ts, 'yyyy/MM/dd HH') FROM shop.sale ORDER BY sale_id

SELECT sale_id FROM shop.sale WHERE ts BETWEEN '2026-01-01' AND '2026-01-02' ORDER BY 1

SELECT sale_id FROM shop.sale WHERE ts::DATE = DATE '2026-02-01' ORDER BY 1

SELECT hired - DATE '2018-01-01', make_date(year(hired), 1, 1) FROM shop.emp ORDER BY id

SELECT window(amount, '1 hour') FROM shop.sale

SELECT count(*) FROM shop.sale GROUP BY window(ts, 'nonsense')

SELECT ts AT TIME ZONE 'UTC' FROM shop.sale

SET TIME ZONE 'Asia/Tokyo'

SELECT sale_id, CAST(ts AS STRING), ts::DATE FROM shop.sale ORDER BY sale_id

SELECT sale_id FROM shop.sale WHERE ts >= '2026-01-03 08:59:59' ORDER BY 1

SET TIME ZONE 'UTC'
