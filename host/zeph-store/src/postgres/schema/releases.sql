-- What a person let out of a conversation: for each destination the labels of what was read by then, as JSON.
CREATE TABLE conversation_releases (
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    destination     TEXT NOT NULL,
    labels          TEXT NOT NULL,
    at_ms           BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, destination)
);
