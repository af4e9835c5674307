-- Under pressure, requests of a workspace with a higher priority are served first.
ALTER TABLE workspaces ADD COLUMN priority smallint NOT NULL DEFAULT 10 CHECK (priority BETWEEN 1 AND 100);
