-- What is to be done when. caller is empty for nobody, else '@' and the name. A run goes on while run_id is set. Claims and runs are held
-- until a moment of the clock of the server; a fence counts up with every claim and every change.
CREATE TABLE schedules (
    id               TEXT PRIMARY KEY,
    revision         BIGINT NOT NULL,
    directory        TEXT NOT NULL,
    caller           TEXT NOT NULL,
    name             TEXT NOT NULL,
    conversation_id  TEXT NOT NULL,
    is_model         BOOLEAN NOT NULL,
    work             TEXT NOT NULL,
    times            TEXT NOT NULL,
    next_ms          BIGINT,
    at_ms            BIGINT NOT NULL,
    run_id           TEXT,
    host_pid         BIGINT,
    host_start       TEXT,
    held_until_ms    BIGINT,
    fence            BIGINT NOT NULL DEFAULT 0,
    claimed_until_ms BIGINT,
    run_fence        BIGINT NOT NULL DEFAULT 0,
    UNIQUE (directory, caller, name)
);
CREATE INDEX schedules_due ON schedules (directory, next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX schedules_ended ON schedules (at_ms) WHERE next_ms IS NULL AND run_id IS NULL;
CREATE INDEX schedules_held ON schedules (run_id) WHERE run_id IS NOT NULL;
CREATE TABLE schedule_runs (
    id           TEXT PRIMARY KEY,
    schedule_id  TEXT NOT NULL,
    due_ms       BIGINT NOT NULL,
    begun_at_ms  BIGINT NOT NULL,
    ended_at_ms  BIGINT,
    state        TEXT NOT NULL,
    note         TEXT NOT NULL
);
CREATE INDEX schedule_runs_of ON schedule_runs (schedule_id, id);
