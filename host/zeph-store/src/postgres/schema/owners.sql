-- A schedule is its caller's only as long as the token is there that the caller came with. caller is then '+', the name, a line break and
-- the digest of the token. One that a client made before this was kept belongs to the token of its name if that is older; else its token is
-- gone, and stands as zeros.
UPDATE schedules SET caller = '+' || substr(caller, 2) || chr(10) || coalesce(
    (SELECT substr(tokens.digest, 8) FROM tokens
        WHERE tokens.name = substr(schedules.caller, 2)
        AND lpad(to_hex(tokens.created_at_ms), 12, '0') COLLATE "C" <= substr(schedules.id, 1, 8) || substr(schedules.id, 10, 4)),
    repeat('0', 64))
WHERE is_model AND caller LIKE '@%' AND position(':' IN caller) = 0;
-- Calls of tokens that nobody knows are not made again.
UPDATE long_tasks SET call = NULL WHERE caller LIKE '@%' AND position(':' IN caller) = 0;
