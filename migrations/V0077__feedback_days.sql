-- How much feedback a workspace sent on a day (UTC), which is bounded. Days that are over are deleted.
CREATE TABLE feedback_days (
    organisation_id uuid NOT NULL,
    workspace_id    uuid NOT NULL,
    day             date NOT NULL,
    sent            bigint NOT NULL,
    PRIMARY KEY (workspace_id, day),
    FOREIGN KEY (organisation_id, workspace_id) REFERENCES workspaces (organisation_id, id)
);
CREATE INDEX feedback_days_day ON feedback_days (day);
