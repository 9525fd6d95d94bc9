//! The tables and their history. A change of the schema is a new entry at the end of the list, never an edit.

use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};

/// Marks a database as ours (`PRAGMA application_id`): the letters `ZEPH`. Another application's file is never touched.
pub(crate) const APPLICATION_ID: i64 = 0x5A45_5048;

/// Every migration ever released, in order.
const HISTORY: &[M<'static>] = &[
    M::up(
    "
    PRAGMA application_id = 0x5A455048;

    CREATE TABLE conversations (
        id            TEXT PRIMARY KEY,
        started_at_ms INTEGER NOT NULL,
        last_used_ms  INTEGER NOT NULL,
        n_calls       INTEGER NOT NULL DEFAULT 0
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE tool_overflow (
        id              TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        created_at_ms   INTEGER NOT NULL,
        n_bytes         INTEGER NOT NULL,
        content         BLOB NOT NULL
    ) STRICT;
    CREATE INDEX tool_overflow_by_conversation ON tool_overflow (conversation_id, n_bytes);
    CREATE INDEX tool_overflow_by_age ON tool_overflow (created_at_ms);

    -- The record outlives its conversation, so the conversation is plain text here and no reference.
    CREATE TABLE audit (
        seq             INTEGER PRIMARY KEY,
        call_id         TEXT NOT NULL UNIQUE,
        begun_at_ms     INTEGER NOT NULL,
        tool            TEXT NOT NULL,
        command         TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        claim_source    TEXT,
        caller_id       TEXT,
        policy_match    TEXT,
        correlation_id  TEXT,
        resolved_cwd    TEXT,
        finished_at_ms  INTEGER,
        result          TEXT,
        result_detail   TEXT,
        duration_ms     INTEGER,
        error_category  TEXT,
        error_domain    TEXT,
        error_phase     TEXT,
        truncated       INTEGER NOT NULL DEFAULT 0,
        overflow_id     TEXT
    ) STRICT;
    CREATE INDEX audit_by_time ON audit (begun_at_ms);
    ",
    ),
    M::up(
        "
    -- A number is never used again: what an operator revokes by number must be what he saw.
    CREATE TABLE grants (
        id              INTEGER PRIMARY KEY AUTOINCREMENT,
        plugin          TEXT NOT NULL,
        wasm            TEXT NOT NULL,
        tools           TEXT NOT NULL,
        capability      TEXT NOT NULL,
        lifetime        TEXT NOT NULL,
        conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE,
        until_ms        INTEGER,
        granted_at_ms   INTEGER NOT NULL,
        -- Held by a running call since then; such a row counts for no other call.
        taken_at_ms     INTEGER
    ) STRICT;
    CREATE INDEX grants_by_plugin ON grants (plugin, wasm, tools);
    CREATE INDEX grants_by_conversation ON grants (conversation_id) WHERE conversation_id IS NOT NULL;
    ",
    ),
    M::up(
        "
    -- Calls that wait for a person. The same call of a conversation waits once, however often it is made.
    CREATE TABLE approval_requests (
        id              TEXT PRIMARY KEY,
        tool            TEXT NOT NULL,
        digest          TEXT NOT NULL,
        directory       TEXT,
        arguments       TEXT NOT NULL,
        arguments_bytes INTEGER NOT NULL,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        reason          TEXT NOT NULL,
        -- A JSON array of texts.
        rules           TEXT NOT NULL,
        at_ms           INTEGER NOT NULL,
        UNIQUE (conversation_id, tool, digest)
    ) STRICT;
    CREATE INDEX approval_requests_by_age ON approval_requests (at_ms);

    -- What a person agreed to. The id is that of the request.
    CREATE TABLE approvals (
        id              TEXT PRIMARY KEY,
        tool            TEXT NOT NULL,
        digest          TEXT NOT NULL,
        directory       TEXT,
        arguments       TEXT NOT NULL,
        arguments_bytes INTEGER NOT NULL,
        -- Null for an approval that holds always.
        conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE,
        lifetime        TEXT NOT NULL,
        approved_at_ms  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX approvals_by_call ON approvals (tool, digest);
    CREATE INDEX approvals_by_conversation ON approvals (conversation_id) WHERE conversation_id IS NOT NULL;
    ",
    ),
    M::up(
        "
    -- Of commands: the exit code, null when a signal ended it; and how much of the jail stood around it.
    ALTER TABLE audit ADD COLUMN exit_code INTEGER;
    ALTER TABLE audit ADD COLUMN execution_env TEXT;
    ",
    ),
    M::up(
        "
    -- Sums of what shortening outputs saved; the rule is empty for those over all outputs. They outlive their conversation,
    -- so it is plain text here, and empty when it is gone.
    CREATE TABLE filter_savings (
        conversation_id TEXT NOT NULL,
        rule            TEXT NOT NULL,
        n_outputs       INTEGER NOT NULL,
        n_shortened     INTEGER NOT NULL,
        lines_before    INTEGER NOT NULL,
        lines_after     INTEGER NOT NULL,
        bytes_before    INTEGER NOT NULL,
        bytes_after     INTEGER NOT NULL,
        n_full          INTEGER NOT NULL,
        n_partial       INTEGER NOT NULL,
        n_fallback      INTEGER NOT NULL,
        n_read_back     INTEGER NOT NULL,
        PRIMARY KEY (conversation_id, rule)
    ) STRICT, WITHOUT ROWID;
    -- The rules that shortened what was shown of it, as a JSON array of texts; null when it was only cut.
    ALTER TABLE tool_overflow ADD COLUMN filter_rules TEXT;
    ALTER TABLE tool_overflow ADD COLUMN is_read_back INTEGER NOT NULL DEFAULT 0;
    ",
    ),
    M::up(
        "
    -- The plugin that offers the tool, and the digest of its component: a name says who was called only together with them.
    ALTER TABLE audit ADD COLUMN plugin TEXT;
    ALTER TABLE audit ADD COLUMN plugin_digest TEXT;
    ",
    ),
    M::up(
        "
    -- The process that makes the call: a call without an end is running as long as this process is.
    ALTER TABLE audit ADD COLUMN host_pid INTEGER;
    ALTER TABLE audit ADD COLUMN host_start TEXT;

    -- What a long output holds beyond its first part, so that no row is long.
    CREATE TABLE tool_overflow_parts (
        overflow_id TEXT NOT NULL REFERENCES tool_overflow (id) ON DELETE CASCADE,
        part        INTEGER NOT NULL,
        content     BLOB NOT NULL,
        PRIMARY KEY (overflow_id, part)
    ) STRICT;
    ",
    ),
    M::up(
        "
    -- Of the turn of the agent that a call belongs to.
    ALTER TABLE audit ADD COLUMN turn_id TEXT;
    ALTER TABLE audit ADD COLUMN goal_id TEXT;
    ALTER TABLE audit ADD COLUMN skill_name TEXT;
    ",
    ),
    M::up(
        "
    -- Plugins of the program whose default grants were revoked.
    CREATE TABLE revoked_defaults (
        plugin TEXT PRIMARY KEY,
        at_ms  INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    ",
    ),
    M::up(
        "
    -- What nobody has used for long is found without reading every conversation.
    CREATE INDEX conversations_by_use ON conversations (last_used_ms);
    ",
    ),
    M::up(
        "
    -- Who agreed and how, as JSON: to a call, and to what was approved.
    ALTER TABLE audit ADD COLUMN agreement TEXT;
    ALTER TABLE approvals ADD COLUMN agreement TEXT;
    ",
    ),
    M::up(
        "
    -- Who may use the MCP endpoint. Of a token only the digest is kept; tools is a JSON array of patterns, null for all.
    CREATE TABLE tokens (
        name          TEXT PRIMARY KEY,
        digest        TEXT NOT NULL UNIQUE,
        tools         TEXT,
        rate          INTEGER,
        created_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER
    ) STRICT, WITHOUT ROWID;
    ",
    ),
    M::up(
        "
    -- The hosts a call reached over the network, as a JSON array with connections and bytes; null when there are none.
    ALTER TABLE audit ADD COLUMN hosts TEXT;
    ",
    ),
    M::up(
        "
    -- How often a call was made, when more than once; and of one that was answered from an earlier call, how old that was and how
    -- many bytes it gave.
    ALTER TABLE audit ADD COLUMN attempts INTEGER;
    ALTER TABLE audit ADD COLUMN cache_age_ms INTEGER;
    ALTER TABLE audit ADD COLUMN cache_bytes INTEGER;
    ",
    ),
    M::up(
        "
    -- The MCP server that offers the tool, by its name in the configuration.
    ALTER TABLE audit ADD COLUMN mcp_server_id TEXT;
    ",
    ),
    M::up(
        "
    -- What an agent said, was told and did in a conversation. Items are JSON of the agent's; one that is a base makes all before it
    -- history.
    CREATE TABLE agent_sessions (
        conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
        title           TEXT NOT NULL,
        directory       TEXT NOT NULL,
        provider        TEXT NOT NULL,
        model           TEXT NOT NULL,
        started_at_ms   INTEGER NOT NULL,
        last_used_ms    INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX agent_sessions_by_use ON agent_sessions (last_used_ms);
    CREATE TABLE agent_items (
        seq             INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id TEXT NOT NULL REFERENCES agent_sessions (conversation_id) ON DELETE CASCADE,
        at_ms           INTEGER NOT NULL,
        is_base         INTEGER NOT NULL,
        item            TEXT NOT NULL
    ) STRICT;
    CREATE INDEX agent_items_by_conversation ON agent_items (conversation_id, seq);
    ",
    ),
    M::up(
        "
    -- Of leave to change single objects: the call without it, and the real paths, as a JSON array. Null for a call.
    ALTER TABLE approval_requests ADD COLUMN call_digest TEXT;
    ALTER TABLE approval_requests ADD COLUMN objects TEXT;
    ALTER TABLE approvals ADD COLUMN call_digest TEXT;
    ALTER TABLE approvals ADD COLUMN objects TEXT;
    ",
    ),
    M::up(
        "
    -- What a conversation works towards, and the tasks that lead to it. A conversation has one active goal at most; `comes_after` is a JSON array
    -- of the tasks that come before.
    CREATE TABLE goals (
        id              TEXT PRIMARY KEY,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        goal            TEXT NOT NULL,
        source          TEXT NOT NULL,
        state           TEXT NOT NULL,
        created_at_ms   INTEGER NOT NULL,
        changed_at_ms   INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX goals_by_conversation ON goals (conversation_id, created_at_ms);
    CREATE UNIQUE INDEX goals_active ON goals (conversation_id) WHERE state = 'active';
    CREATE TABLE goal_tasks (
        goal_id  TEXT NOT NULL REFERENCES goals (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        task     TEXT NOT NULL,
        title    TEXT NOT NULL,
        state    TEXT NOT NULL,
        comes_after TEXT NOT NULL,
        PRIMARY KEY (goal_id, position)
    ) STRICT, WITHOUT ROWID;
    ",
    ),
    M::up(
        "
    -- What the model said that judges calls; null for a call that was not judged.
    ALTER TABLE audit ADD COLUMN adversarial_verdict TEXT;
    ",
    ),
    M::up(
        "
    -- Of rules that were approved in place of a call: the digest of what they hold for, and a JSON array of texts.
    ALTER TABLE approvals ADD COLUMN rule_scope TEXT;
    ALTER TABLE approvals ADD COLUMN kept_rules TEXT;
    ",
    ),
    M::up(
        "
    -- What is to be done when. `caller` is empty for nobody, else '@' and the name. A run goes on while `run_id` is set.
    CREATE TABLE schedules (
        id              TEXT PRIMARY KEY,
        revision        INTEGER NOT NULL,
        directory       TEXT NOT NULL,
        caller          TEXT NOT NULL,
        name            TEXT NOT NULL,
        conversation_id TEXT NOT NULL,
        is_model        INTEGER NOT NULL,
        work            TEXT NOT NULL,
        times           TEXT NOT NULL,
        next_ms         INTEGER,
        at_ms           INTEGER NOT NULL,
        run_id          TEXT,
        host_pid        INTEGER,
        host_start      TEXT,
        held_until_ms   INTEGER,
        UNIQUE (directory, caller, name)
    ) STRICT;
    CREATE INDEX schedules_due ON schedules (directory, next_ms) WHERE next_ms IS NOT NULL;
    CREATE INDEX schedules_ended ON schedules (at_ms) WHERE next_ms IS NULL AND run_id IS NULL;
    CREATE INDEX schedules_held ON schedules (run_id) WHERE run_id IS NOT NULL;
    CREATE TABLE schedule_runs (
        id           TEXT PRIMARY KEY,
        schedule_id  TEXT NOT NULL,
        due_ms       INTEGER NOT NULL,
        begun_at_ms  INTEGER NOT NULL,
        ended_at_ms  INTEGER,
        state        TEXT NOT NULL,
        note         TEXT NOT NULL
    ) STRICT;
    CREATE INDEX schedule_runs_of ON schedule_runs (schedule_id, id);
    ",
    ),
    M::up(
        "
    -- When calls last used what plugins were granted, and since when that is kept.
    CREATE TABLE grant_uses (
        plugin     TEXT NOT NULL,
        capability TEXT NOT NULL,
        used_at_ms INTEGER NOT NULL,
        PRIMARY KEY (plugin, capability)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE grant_uses_since (at_ms INTEGER NOT NULL) STRICT;
    INSERT INTO grant_uses_since VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER));
    ",
    ),
    M::up(
        "
    -- What the checks of the host know of a call besides; `labels` and `result_labels` are JSON arrays of texts, null when empty.
    ALTER TABLE audit ADD COLUMN user TEXT;
    ALTER TABLE audit ADD COLUMN scope TEXT;
    ALTER TABLE audit ADD COLUMN trust TEXT;
    ALTER TABLE audit ADD COLUMN labels TEXT;
    ALTER TABLE audit ADD COLUMN observed TEXT;
    ALTER TABLE audit ADD COLUMN tokens_in INTEGER;
    ALTER TABLE audit ADD COLUMN tokens_out INTEGER;
    ALTER TABLE audit ADD COLUMN result_labels TEXT;

    -- The event of audit_chain that vouches for how the call began; null for calls from before the chain.
    ALTER TABLE audit ADD COLUMN chain_n INTEGER;

    -- What happened to the audit, numbered without a gap. `tag` is the code of what was recorded of a call; `code` is made over the code of
    -- the event before, this row and the tag, with a key that is not in this file. `seq` and `call` name the row of a call, `begun` is the
    -- event of its begin; `body` is JSON for events of no call.
    CREATE TABLE audit_chain (
        n     INTEGER PRIMARY KEY,
        kind  INTEGER NOT NULL,
        seq   INTEGER,
        call  BLOB,
        begun INTEGER,
        body  TEXT,
        tag   BLOB,
        code  BLOB NOT NULL
    ) STRICT;
    CREATE INDEX audit_chain_marks ON audit_chain (n) WHERE body IS NOT NULL;

    -- Up to which event, and when, a checkpoint was last handed out. One row at most.
    CREATE TABLE audit_checkpoint (
        id    INTEGER PRIMARY KEY CHECK (id = 1),
        n     INTEGER NOT NULL,
        at_ms INTEGER NOT NULL
    ) STRICT;
    ",
    ),
    M::up(
        "
    -- Sequences of calls that went wrong, as JSON arrays of words. A number is never used again: it is what a person forgives.
    CREATE TABLE sequences (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        words   TEXT NOT NULL UNIQUE,
        state   TEXT NOT NULL,
        cause   TEXT NOT NULL,
        call_id TEXT NOT NULL,
        n_bad   INTEGER NOT NULL,
        n_good  INTEGER NOT NULL,
        at_ms   INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX sequences_by_state ON sequences (state, at_ms);
    CREATE TABLE sequence_changes (version INTEGER NOT NULL) STRICT;
    INSERT INTO sequence_changes (version) VALUES (0);

    -- What conversations remember: the words of their last calls, as JSON, and the labels of what they read or, with an output, of that.
    CREATE TABLE conversation_calls (
        seq             INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        call_id         TEXT NOT NULL,
        words           TEXT NOT NULL
    ) STRICT;
    CREATE INDEX conversation_calls_by_conversation ON conversation_calls (conversation_id, seq);
    CREATE TABLE conversation_labels (
        seq             INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        output_id       TEXT,
        kind            TEXT NOT NULL,
        source          TEXT NOT NULL,
        at_ms           INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX conversation_labels_by_conversation ON conversation_labels (conversation_id, seq);
    ",
    ),
    M::up(
        "
    -- Vectors of texts, by the digest of the model and the text; four bytes for each number, the lowest first.
    CREATE TABLE vectors (
        digest  BLOB PRIMARY KEY,
        vector  BLOB NOT NULL,
        used_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX vectors_by_use ON vectors (used_ms);
    ",
    ),
    M::up(
        "
    -- How far tools and their owners are trusted, by everybody (caller is empty) or by one caller; subjects are named by their owners.
    CREATE TABLE trust (
        subject      TEXT NOT NULL,
        caller       TEXT NOT NULL,
        level        TEXT NOT NULL,
        reason       TEXT NOT NULL,
        is_automatic INTEGER NOT NULL,
        at_ms        INTEGER NOT NULL,
        PRIMARY KEY (subject, caller)
    ) STRICT, WITHOUT ROWID;
    -- The last executions of a tool, or of the tools of an owner, for one caller, as JSON; there while something has failed among them.
    CREATE TABLE trust_windows (
        subject       TEXT NOT NULL,
        caller        TEXT NOT NULL,
        executions    TEXT NOT NULL,
        changed_at_ms INTEGER NOT NULL,
        PRIMARY KEY (subject, caller)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX trust_windows_by_change ON trust_windows (changed_at_ms);
    -- One row. Changes with the other two, but for what goes on within a window.
    CREATE TABLE trust_version (
        id      INTEGER PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL
    ) STRICT;
    INSERT INTO trust_version (id, version) VALUES (1, 0);

    -- How often rules and grants on trial would have decided what, by the hour.
    CREATE TABLE observed_decisions (
        hour_ms    INTEGER NOT NULL,
        rule       TEXT NOT NULL,
        would      TEXT NOT NULL,
        decided    TEXT NOT NULL,
        tool       TEXT NOT NULL,
        n_calls    INTEGER NOT NULL,
        last_at_ms INTEGER NOT NULL,
        PRIMARY KEY (hour_ms, rule, would, decided, tool)
    ) STRICT, WITHOUT ROWID;

    -- Of a grant: observe, ask or deny; null when it simply allows.
    ALTER TABLE grants ADD COLUMN mode TEXT;
    ",
    ),
    M::up(
        "
    -- Seals that hosts with the same keys have opened for good; kept until none of them can be opened any more.
    CREATE TABLE used_seals (
        ticket     TEXT PRIMARY KEY,
        used_at_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX used_seals_by_use ON used_seals (used_at_ms);
    -- When the bucket of a token's calls is full again, in microseconds: a bucket that is full has no row to count for.
    CREATE TABLE call_buckets (
        token   TEXT PRIMARY KEY,
        full_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    -- Whose outputs of clients are; null where nobody says who calls.
    CREATE TABLE output_callers (
        overflow_id TEXT PRIMARY KEY REFERENCES tool_overflow (id) ON DELETE CASCADE,
        caller      TEXT
    ) STRICT, WITHOUT ROWID;
    -- One row, a number that changes with what plugins offer.
    CREATE TABLE offer_version (
        id      INTEGER PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL
    ) STRICT;
    INSERT INTO offer_version (id, version) VALUES (1, 0);
    ",
    ),
    M::up(
        "
    -- Claims and runs are held until a moment of the clock of the database; a fence counts up with every claim and every change.
    ALTER TABLE schedules ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE schedules ADD COLUMN claimed_until_ms INTEGER;
    ALTER TABLE schedules ADD COLUMN run_fence INTEGER NOT NULL DEFAULT 0;

    -- The calls that count towards the quota of a conversation, and what was counted last: calls asked for at once count as one.
    ALTER TABLE conversations ADD COLUMN n_counted INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE conversations ADD COLUMN counted_batch TEXT NOT NULL DEFAULT '';

    -- Calls that outlive their request. `caller` is empty for nobody, else '@' and the name; `call` is what makes the call again, null when
    -- nothing may. Moments are those of the clock of the database.
    CREATE TABLE long_tasks (
        id              TEXT PRIMARY KEY,
        caller          TEXT NOT NULL,
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        workspace       TEXT NOT NULL,
        call            TEXT,
        state           TEXT NOT NULL,
        message         TEXT NOT NULL,
        result          TEXT,
        is_cancelled    INTEGER NOT NULL,
        fence           INTEGER NOT NULL,
        created_at_ms   INTEGER NOT NULL,
        changed_at_ms   INTEGER NOT NULL,
        lifetime_ms     INTEGER NOT NULL,
        held_until_ms   INTEGER NOT NULL,
        gone_at_ms      INTEGER NOT NULL
    ) STRICT;
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
    ) STRICT, WITHOUT ROWID;
    ",
    ),
    M::up(
        "
    -- The last index of plugins of each source: its number, its digest, the keys of the next one, one a line, and those of the configuration.
    CREATE TABLE plugin_indexes (
        source     TEXT PRIMARY KEY,
        number     INTEGER NOT NULL,
        document   TEXT NOT NULL,
        keys       TEXT NOT NULL,
        configured TEXT NOT NULL,
        at_ms      INTEGER NOT NULL
    ) STRICT;
    ",
    ),
    M::up(
        "
    -- Whether a person had to answer before the call could run; null for what a person does, and for calls from before this was known.
    ALTER TABLE audit ADD COLUMN asked INTEGER;
    ",
    ),
    M::up(
        "
    -- Vectors of passages that plugins search by meaning: by the digest of the plugin and the model, and a key of the plugin's choice; one
    -- signed byte for each number.
    CREATE TABLE passages (
        space   BLOB NOT NULL,
        key     BLOB NOT NULL,
        vector  BLOB NOT NULL,
        used_ms INTEGER NOT NULL,
        PRIMARY KEY (space, key)
    ) STRICT;
    CREATE INDEX passages_by_use ON passages (used_ms, space, key);
    ",
    ),
    M::up(
        "
    -- What a person let out of a conversation: for each destination the labels of what was read by then, as JSON.
    CREATE TABLE conversation_releases (
        conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        destination     TEXT NOT NULL,
        labels          TEXT NOT NULL,
        at_ms           INTEGER NOT NULL,
        PRIMARY KEY (conversation_id, destination)
    ) STRICT, WITHOUT ROWID;
    ",
    ),
    M::up(
        "
    -- The newest outputs of a conversation are found without reading all of them, and their bytes are added up without reading rows.
    DROP INDEX tool_overflow_by_conversation;
    CREATE INDEX tool_overflow_by_conversation ON tool_overflow (conversation_id, created_at_ms, n_bytes);
    ",
    ),
    M::up(
        "
    -- What tells the content that was read from any that its source had or will have.
    ALTER TABLE conversation_labels ADD COLUMN stamp TEXT;
    ",
    ),
    M::up(
        "
    -- A schedule is its caller's only as long as the token is there that the caller came with. `caller` is then '+', the name, a line break
    -- and the digest of the token. One that a client made before this was kept belongs to the token of its name if that is older; else its
    -- token is gone, and stands as zeros.
    UPDATE schedules SET caller = '+' || substr(caller, 2) || char(10) || coalesce(
        (SELECT substr(tokens.digest, 8) FROM tokens
            WHERE tokens.name = substr(schedules.caller, 2)
            AND printf('%012x', tokens.created_at_ms) <= substr(schedules.id, 1, 8) || substr(schedules.id, 10, 4)),
        printf('%064d', 0))
    WHERE is_model AND caller LIKE '@%' AND instr(caller, ':') = 0;
    -- Calls of tokens that nobody knows are not made again.
    UPDATE long_tasks SET call = NULL WHERE caller LIKE '@%' AND instr(caller, ':') = 0;
    ",
    ),
    M::up(
        "
    -- Who asks for an approval: empty for nobody, else as in `long_tasks`. What one caller asks for does not push out what others do.
    ALTER TABLE approval_requests ADD COLUMN caller TEXT NOT NULL DEFAULT '';
    CREATE INDEX approval_requests_by_caller ON approval_requests (caller, at_ms);
    ",
    ),
    M::up(
        "
    -- The process that holds a task, as for runs of schedules; null when one let go of it.
    ALTER TABLE long_tasks ADD COLUMN host_pid INTEGER;
    ALTER TABLE long_tasks ADD COLUMN host_start TEXT;
    ",
    ),
];

const MIGRATIONS: Migrations<'static> = Migrations::from_slice(HISTORY);

/// The newest schema version this program knows.
pub(crate) fn newest_version() -> i64 {
    i64::try_from(HISTORY.len()).unwrap_or(i64::MAX)
}

/// Brings the database to the newest version, in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    use rusqlite_migration::Error;
    MIGRATIONS
        .to_latest(connection)
        .map_err(|error| match error {
            Error::RusqliteError { err, .. } => err,
            other => rusqlite::Error::ToSqlConversionFailure(Box::new(other)),
        })
}

/// Reads the newest row of every table, so that damage where the next write goes shows at start.
///
/// Limits: a handful of pages, whatever the size of the database.
pub(crate) fn probe(connection: &Connection) -> rusqlite::Result<()> {
    const PROBES: [&str; 7] = [
        "SELECT * FROM conversations ORDER BY id DESC LIMIT 1",
        "SELECT rowid, conversation_id, n_bytes FROM tool_overflow ORDER BY rowid DESC LIMIT 1",
        "SELECT * FROM audit ORDER BY seq DESC LIMIT 1",
        "SELECT * FROM grants ORDER BY id DESC LIMIT 1",
        "SELECT * FROM approval_requests ORDER BY at_ms DESC LIMIT 1",
        "SELECT * FROM approvals ORDER BY rowid DESC LIMIT 1",
        "SELECT max(call_id), (SELECT max(begun_at_ms) FROM audit) FROM audit",
    ];
    for probe in PROBES {
        let mut statement = connection.prepare(probe)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
