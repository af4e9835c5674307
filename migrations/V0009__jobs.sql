-- When each job of the control plane is due, so that any number of admins together run it as often as one would. Who
-- runs it now is an advisory lock, which ends with its holder.

CREATE TABLE jobs (
    name            text PRIMARY KEY,
    next_run_at     timestamptz NOT NULL,
    last_success_at timestamptz NOT NULL
);
