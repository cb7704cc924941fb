-- What a person approved, one row per launch.
CREATE TABLE approval (
    -- The digest of the digest of the launch: the files of the second format were named so, and held no more of it.
    launch     TEXT NOT NULL PRIMARY KEY,
    dependency TEXT NOT NULL,
    -- The record as JSON, byte for byte as it was in its file.
    record     TEXT NOT NULL
) STRICT;

CREATE INDEX approval_dependency ON approval (dependency);

-- All that counting and watching the asks that wait needs: their rows, which may be large, are not read for it.
DROP INDEX workflow_live_deadline;
CREATE INDEX workflow_live ON workflow (expires_at, created_at, asker, project, id, phase) WHERE phase <> 'final';
