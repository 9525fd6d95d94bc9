-- What a conversation works towards, and the tasks that lead to it. A conversation has one active goal at most; comes_after is a JSON array of
-- the tasks that come before.
CREATE TABLE goals (
    id              TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    goal            TEXT NOT NULL,
    source          TEXT NOT NULL,
    state           TEXT NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    changed_at_ms   BIGINT NOT NULL
);
CREATE INDEX goals_by_conversation ON goals (conversation_id, created_at_ms);
CREATE UNIQUE INDEX goals_active ON goals (conversation_id) WHERE state = 'active';
CREATE TABLE goal_tasks (
    goal_id     TEXT NOT NULL REFERENCES goals (id) ON DELETE CASCADE,
    position    BIGINT NOT NULL,
    task        TEXT NOT NULL,
    title       TEXT NOT NULL,
    state       TEXT NOT NULL,
    comes_after TEXT NOT NULL,
    PRIMARY KEY (goal_id, position)
);
