-- Folders of the log store that nobody needs any more: bodies of days that were dropped, files of exports that are gone.
-- Noted in the transaction that made them so and deleted afterwards: a store knows no transactions.

CREATE TABLE object_deletions (
    -- As `bodies/<organisation>/<workspace>/<day>`.
    folder   text PRIMARY KEY,
    -- When it was noted, or last tried in vain.
    noted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX object_deletions_noted ON object_deletions (noted_at);
