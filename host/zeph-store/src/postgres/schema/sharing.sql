-- Seals that hosts with the same keys have opened for good; kept until none of them can be opened any more.
CREATE TABLE used_seals (
    ticket     TEXT PRIMARY KEY,
    used_at_ms BIGINT NOT NULL
);
CREATE INDEX used_seals_by_use ON used_seals (used_at_ms);
-- When the bucket of a token's calls is full again, in microseconds: a bucket that is full has no row to count for.
CREATE TABLE call_buckets (
    token   TEXT PRIMARY KEY,
    full_us BIGINT NOT NULL
);
-- Whose outputs of clients are; null where nobody says who calls.
CREATE TABLE output_callers (
    overflow_id TEXT PRIMARY KEY REFERENCES tool_overflow (id) ON DELETE CASCADE,
    caller      TEXT
);
-- One row, a number that changes with what plugins offer.
CREATE TABLE offer_version (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL
);
INSERT INTO offer_version (id, version) VALUES (1, 0);
