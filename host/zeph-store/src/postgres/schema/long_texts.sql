-- Paths, addresses and rules may be longer than what an index holds (2,704 bytes): unique is their digest, as of `sequences`. The schedules of
-- a directory are found by its hash.
ALTER TABLE schedules DROP CONSTRAINT schedules_directory_caller_name_key;
CREATE UNIQUE INDEX schedules_by_name ON schedules (sha256(decode(replace(directory, '\', '\\'), 'escape')), caller, name);
CREATE INDEX schedules_of_directory ON schedules USING hash (directory);
DROP INDEX schedules_due;
CREATE INDEX schedules_due ON schedules (next_ms) WHERE next_ms IS NOT NULL;
ALTER TABLE grant_uses DROP CONSTRAINT grant_uses_pkey;
CREATE UNIQUE INDEX grant_uses_by_capability ON grant_uses (plugin, sha256(decode(replace(capability, '\', '\\'), 'escape')));
ALTER TABLE plugin_indexes DROP CONSTRAINT plugin_indexes_pkey;
CREATE UNIQUE INDEX plugin_indexes_by_source ON plugin_indexes (sha256(decode(replace(source, '\', '\\'), 'escape')));
ALTER TABLE conversation_releases DROP CONSTRAINT conversation_releases_pkey;
CREATE UNIQUE INDEX conversation_releases_by_destination
    ON conversation_releases (conversation_id, sha256(decode(replace(destination, '\', '\\'), 'escape')));
ALTER TABLE observed_decisions DROP CONSTRAINT observed_decisions_pkey;
CREATE UNIQUE INDEX observed_decisions_by_hour
    ON observed_decisions (hour_ms, sha256(decode(replace(rule, '\', '\\'), 'escape')), would, decided, tool);
-- What a replica calls itself (`mcp.serve.replica`); null for other hosts.
ALTER TABLE host_processes ADD COLUMN replica TEXT;
