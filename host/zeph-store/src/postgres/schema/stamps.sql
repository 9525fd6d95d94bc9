-- What tells the content that was read from any that its source had or will have.
ALTER TABLE conversation_labels ADD COLUMN stamp TEXT;
