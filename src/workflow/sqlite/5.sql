-- The channel that the asker named; NULL where the routes of the user say where it goes.
ALTER TABLE workflow ADD COLUMN channel TEXT;

-- What was sent of an ask to a person on a channel: one row each, gone with the ask. No text of an ask stands here.
CREATE TABLE delivery (
    workflow TEXT    NOT NULL,
    channel  TEXT    NOT NULL,
    -- The opaque id by which the service names the person.
    person   TEXT    NOT NULL,
    state    TEXT    NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'failed', 'closed')),
    attempts INTEGER NOT NULL,
    -- Why it failed, or why the last attempt did; no token and no text of an ask.
    error    TEXT,
    -- Ties a press to its message; known before the message is sent.
    nonce    TEXT    NOT NULL,
    -- Where the message stands, as its channel writes it; JSON.
    message  TEXT,
    -- The revision of the ask that the message shows, and how it stands there.
    revision INTEGER NOT NULL,
    standing TEXT    NOT NULL,
    PRIMARY KEY (workflow, channel, person)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_nonce ON delivery (nonce);
CREATE INDEX delivery_person ON delivery (channel, person);
CREATE INDEX delivery_open ON delivery (state) WHERE state <> 'closed';

CREATE TRIGGER delivery_removed AFTER DELETE ON workflow BEGIN
    DELETE FROM delivery WHERE workflow = OLD.id;
END;

-- How each channel stands, as the process says that holds its connection.
CREATE TABLE channel (
    name        TEXT    NOT NULL PRIMARY KEY,
    state       TEXT    NOT NULL CHECK (state IN ('connecting', 'connected', 'failed')),
    error       TEXT,
    pid         INTEGER NOT NULL,
    started     INTEGER NOT NULL,
    reported_at INTEGER NOT NULL
) STRICT;
