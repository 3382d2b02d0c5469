SELECT /* one /* inside */ another */ count(*) FROM shop.emp -- the end

-- a comment before
SELECT id -- FROM shop.nosuch
FROM shop.emp /* WHERE id = 9 */ ORDER BY id

SELECT '-- not a comment', "/* neither */", 'it''s', r'a\n', 'FROM shop.nosuch' FROM shop.emp WHERE id = 1

SELECT 'a' 'b' "c" FROM shop.emp WHERE id = 1

SELECT X'1F', 1L, 2S, 3Y, 1.5BD, 1e3, .5, 1.0D, 2.0F, TRUE, NULL FROM shop.emp WHERE id = 1

SELECT DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00', INTERVAL '1' DAY, INTERVAL '1-2' YEAR TO MONTH FROM shop.emp WHERE id = 1

SELECT /* ; */ max(id) FROM shop.emp;

SELECT max(id) FROM shop.emp /* not closed

SELECT 'not closed FROM shop.emp

SELECT 1 AS `back``quote` FROM shop.emp WHERE id = 1

SELECT
  id
    , name

    FROM shop.emp

SELECT "id" FROM shop.emp WHERE id = 1

SELECT id FROM shop.emp WHERE name = 'Ann' AND/**/id=1--x
