-- The process that holds a task, as for runs of schedules; null when one let go of it.
ALTER TABLE long_tasks ADD COLUMN host_pid BIGINT;
ALTER TABLE long_tasks ADD COLUMN host_start TEXT;
