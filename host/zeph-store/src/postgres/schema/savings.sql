-- Sums of what shortening outputs saved; the rule is empty for those over all outputs. They outlive their conversation, so it is plain text
-- here, and empty when it is gone.
CREATE TABLE filter_savings (
    conversation_id TEXT NOT NULL,
    rule            TEXT NOT NULL,
    n_outputs       BIGINT NOT NULL,
    n_shortened     BIGINT NOT NULL,
    lines_before    BIGINT NOT NULL,
    lines_after     BIGINT NOT NULL,
    bytes_before    BIGINT NOT NULL,
    bytes_after     BIGINT NOT NULL,
    n_full          BIGINT NOT NULL,
    n_partial       BIGINT NOT NULL,
    n_fallback      BIGINT NOT NULL,
    n_read_back     BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, rule)
);
