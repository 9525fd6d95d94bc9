-- Who asks for an approval: empty for nobody, else as in `long_tasks`. What one caller asks for does not push out what others do.
ALTER TABLE approval_requests ADD COLUMN caller TEXT NOT NULL DEFAULT '';
CREATE INDEX approval_requests_by_caller ON approval_requests (caller, at_ms);
