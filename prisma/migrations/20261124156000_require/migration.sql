-- A statement that is a transaction by itself can only be taken back by an error. This is that error: SQLSTATE MU001 where the condition
-- that the rest of the statement rests on does not hold. Volatile, so that the planner neither folds it nor moves it ahead.
CREATE FUNCTION muster.require(condition boolean) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF condition THEN
    RETURN true;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'MU001', MESSAGE = 'what this statement requires does not hold';
END
$$;
