-- Calls that outlive their request. caller is empty for nobody, else '@' and the name; call is what makes the call again, null when nothing
-- may. Moments are those of the clock of the server.
CREATE TABLE long_tasks (
    id              TEXT PRIMARY KEY,
    caller          TEXT NOT NULL,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    workspace       TEXT NOT NULL,
    call            TEXT,
    state           TEXT NOT NULL,
    message         TEXT NOT NULL,
    result          TEXT,
    is_cancelled    BOOLEAN NOT NULL,
    fence           BIGINT NOT NULL,
    created_at_ms   BIGINT NOT NULL,
    changed_at_ms   BIGINT NOT NULL,
    lifetime_ms     BIGINT NOT NULL,
    held_until_ms   BIGINT NOT NULL,
    gone_at_ms      BIGINT NOT NULL
);
CREATE INDEX long_tasks_by_caller ON long_tasks (caller);
CREATE INDEX long_tasks_by_conversation ON long_tasks (conversation_id);
CREATE INDEX long_tasks_held ON long_tasks (held_until_ms) WHERE state = 'working';
CREATE INDEX long_tasks_gone ON long_tasks (gone_at_ms);
CREATE TABLE long_task_questions (
    task_id  TEXT NOT NULL REFERENCES long_tasks (id) ON DELETE CASCADE,
    key      TEXT NOT NULL,
    question TEXT NOT NULL,
    answer   TEXT,
    PRIMARY KEY (task_id, key)
);
