BEGIN
  SELECT count(*) FROM shop.emp;
END

BEGIN
  DECLARE n INT DEFAULT 0;
  SET n = (SELECT max(id) FROM shop.emp);
  SELECT name FROM shop.emp WHERE id = n;
END

BEGIN
  DECLARE total BIGINT DEFAULT 0;
  FOR r AS SELECT id FROM shop.emp WHERE id < 4 DO
    SET total = total + r.id;
  END FOR;
  SELECT total;
END

BEGIN
  DECLARE i INT DEFAULT 1;
  WHILE i < 3 DO
    SET i = i + 1;
  END WHILE;
  SELECT name FROM shop.emp WHERE id = i;
END

BEGIN
  IF (SELECT count(*) FROM shop.emp) > 5 THEN
    SELECT 'many';
  ELSE
    SELECT 'few';
  END IF;
END

BEGIN
  CASE (SELECT city FROM shop.dept WHERE dept = 'ops')
    WHEN 'Oslo' THEN SELECT 1;
    WHEN 'Rome' THEN SELECT 2;
    ELSE SELECT 3;
  END CASE;
END

BEGIN
  CREATE TABLE shop.scripted (a INT, b STRING);
  INSERT INTO shop.scripted SELECT id, name FROM shop.emp WHERE id < 3;
  INSERT INTO shop.scripted VALUES (9, 'z');
END

SELECT * FROM shop.scripted ORDER BY a

BEGIN
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'caught'; END;
  SELECT * FROM shop.nosuch;
END

BEGIN
  DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN SELECT 'zero'; END;
  SELECT 1 / (id - id) FROM shop.emp;
END

BEGIN
  lp: LOOP
    LEAVE lp;
  END LOOP;
  SELECT max(a) FROM shop.scripted;
END

BEGIN
  DECLARE i INT DEFAULT 0;
  REPEAT
    SET i = i + 1;
    INSERT INTO shop.scripted VALUES (i + 100, 'r');
  UNTIL i >= 2
  END REPEAT;
  SELECT count(*) FROM shop.scripted;
END

BEGIN
  DECLARE t STRING DEFAULT 'shop.emp';
  SELECT count(*) FROM IDENTIFIER(t);
END

BEGIN
  DECLARE x INT;
  EXECUTE IMMEDIATE 'SELECT max(id) FROM shop.emp' INTO x;
  SELECT x;
END

BEGIN
  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'stop';
END

BEGIN
  SELECT nosuch FROM shop.emp;
END

BEGIN
  DROP TABLE shop.scripted;
END

BEGIN
  SELECT * FROM shop.scripted;
END

BEGIN
  DECLARE n INT;
  SET (n) = (SELECT min(id) FROM shop.emp);
  VALUES (n);
END
