CREATE TABLE workflow (
    id         TEXT    NOT NULL PRIMARY KEY,
    code       TEXT    NOT NULL,
    ask        TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    -- Erased as soon as the phase is final.
    arguments  BLOB,
    launch     TEXT    NOT NULL,
    project    BLOB    NOT NULL,
    state      TEXT    NOT NULL,
    -- What the state still allows, for the indexes below.
    phase      TEXT    NOT NULL CHECK (phase IN ('pending', 'approved', 'final')),
    -- The digest of everything that makes two asks the same; erased when the row leaves pending.
    identity   TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX workflow_live_code ON workflow (code) WHERE phase <> 'final';
CREATE UNIQUE INDEX workflow_pending_identity ON workflow (identity) WHERE phase = 'pending';
CREATE INDEX workflow_live_deadline ON workflow (expires_at) WHERE phase <> 'final';
CREATE INDEX workflow_deadline ON workflow (expires_at);
