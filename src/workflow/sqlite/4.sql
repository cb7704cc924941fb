-- Counts the changes of all workflows: what shows them asks for those that came after the last one it saw.
CREATE TABLE revision (
    one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    -- The revision of the newest change.
    latest  INTEGER NOT NULL,
    -- The highest revision of a row that was deleted: what saw less than this must read everything anew.
    deleted INTEGER NOT NULL
) STRICT;
INSERT INTO revision (one, latest, deleted) VALUES (1, 0, 0);

-- The revision of the newest change of the row; 0 in rows of earlier formats.
ALTER TABLE workflow ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
-- The client and the process that asked, as JSON.
ALTER TABLE workflow ADD COLUMN client TEXT NOT NULL DEFAULT '{}';

CREATE INDEX workflow_revision ON workflow (revision);

CREATE TRIGGER workflow_created AFTER INSERT ON workflow BEGIN
    UPDATE revision SET latest = latest + 1;
    UPDATE workflow SET revision = (SELECT latest FROM revision) WHERE id = NEW.id;
END;
CREATE TRIGGER workflow_changed AFTER UPDATE OF state, attended ON workflow BEGIN
    UPDATE revision SET latest = latest + 1;
    UPDATE workflow SET revision = (SELECT latest FROM revision) WHERE id = NEW.id;
END;
CREATE TRIGGER workflow_removed AFTER DELETE ON workflow BEGIN
    UPDATE revision SET deleted = max(deleted, OLD.revision);
END;

-- Whether the row holds arguments, which the log must not keep once they are erased; questions hold none and may wait
-- for weeks.
ALTER TABLE workflow ADD COLUMN holds_arguments INTEGER GENERATED ALWAYS AS (arguments IS NOT NULL) VIRTUAL;
DROP INDEX workflow_live;
CREATE INDEX workflow_live ON workflow (expires_at, created_at, asker, project, id, phase, holds_arguments)
    WHERE phase <> 'final';
