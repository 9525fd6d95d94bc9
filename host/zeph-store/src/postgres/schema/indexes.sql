-- The last index of plugins of each source: its number, its digest, the keys of the next one, one a line, and those of the configuration.
CREATE TABLE plugin_indexes (
    source     TEXT PRIMARY KEY,
    number     BIGINT NOT NULL,
    document   TEXT NOT NULL,
    keys       TEXT NOT NULL,
    configured TEXT NOT NULL,
    at_ms      BIGINT NOT NULL
);
