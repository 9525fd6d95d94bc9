-- How often rules and grants on trial would have decided what, by the hour.
CREATE TABLE observed_decisions (
    hour_ms    BIGINT NOT NULL,
    rule       TEXT NOT NULL,
    would      TEXT NOT NULL,
    decided    TEXT NOT NULL,
    tool       TEXT NOT NULL,
    n_calls    BIGINT NOT NULL,
    last_at_ms BIGINT NOT NULL,
    PRIMARY KEY (hour_ms, rule, would, decided, tool)
);
