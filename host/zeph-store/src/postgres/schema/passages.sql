-- Vectors of passages that plugins search by meaning: by the digest of the plugin and the model, and a key of the plugin's choice; one
-- signed byte for each number.
CREATE TABLE passages (
    space   BYTEA NOT NULL,
    key     BYTEA NOT NULL,
    vector  BYTEA NOT NULL,
    used_ms BIGINT NOT NULL,
    PRIMARY KEY (space, key)
);
CREATE INDEX passages_by_use ON passages (used_ms, space, key);
