-- Vectors of texts, by the digest of the model and the text; four bytes for each number, the lowest first.
CREATE TABLE vectors (
    digest  BYTEA PRIMARY KEY,
    vector  BYTEA NOT NULL,
    used_ms BIGINT NOT NULL
);
CREATE INDEX vectors_by_use ON vectors (used_ms);
