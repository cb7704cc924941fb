-- The file of the configuration the ask was made under; NULL in rows of the first format.
ALTER TABLE workflow ADD COLUMN config BLOB;
-- Who may answer, as that configuration said: 'client' or 'human'. Rows of the first format take a person's word only.
ALTER TABLE workflow ADD COLUMN policy TEXT NOT NULL DEFAULT 'human';
-- The conversation that asked.
ALTER TABLE workflow ADD COLUMN asker TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
-- Whether a call of that conversation waits for the answer.
ALTER TABLE workflow ADD COLUMN attended INTEGER NOT NULL DEFAULT 0;
-- The digest of what an identical call shares with this one, in any conversation; erased when the row is final.
ALTER TABLE workflow ADD COLUMN likeness TEXT;

CREATE INDEX workflow_answered_likeness ON workflow (likeness) WHERE phase = 'approved';
