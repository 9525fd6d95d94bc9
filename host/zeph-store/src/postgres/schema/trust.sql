-- How far tools and their owners are trusted, by everybody (caller is empty) or by one caller; subjects are named by their owners.
CREATE TABLE trust (
    subject      TEXT NOT NULL,
    caller       TEXT NOT NULL,
    level        TEXT NOT NULL,
    reason       TEXT NOT NULL,
    is_automatic BOOLEAN NOT NULL,
    at_ms        BIGINT NOT NULL,
    PRIMARY KEY (subject, caller)
);
-- The last executions of a tool, or of the tools of an owner, for one caller, as JSON; there while something has failed among them.
CREATE TABLE trust_windows (
    subject       TEXT NOT NULL,
    caller        TEXT NOT NULL,
    executions    TEXT NOT NULL,
    changed_at_ms BIGINT NOT NULL,
    PRIMARY KEY (subject, caller)
);
CREATE INDEX trust_windows_by_change ON trust_windows (changed_at_ms);
-- One row. Changes with the other two, but for what goes on within a window.
CREATE TABLE trust_version (
    id      BIGINT PRIMARY KEY CHECK (id = 1),
    version BIGINT NOT NULL
);
INSERT INTO trust_version (id, version) VALUES (1, 0);
