-- The calls that count towards the quota of a conversation, and what was counted last: calls asked for at once count as one.
ALTER TABLE conversations ADD COLUMN n_counted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN counted_batch TEXT NOT NULL DEFAULT '';
