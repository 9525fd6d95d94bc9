-- Whether a person had to answer before the call could run; null for what a person does, and for calls from before this was known.
ALTER TABLE audit ADD COLUMN asked BOOLEAN;
