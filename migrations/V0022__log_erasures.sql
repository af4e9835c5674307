-- Erasures that were asked for. Logs come late: proxies keep them on disk while Postgres or the log store is away, and
-- bodies follow their rows. So what was erased is looked for again, for as long as anything from before may still come.

CREATE TABLE log_erasures (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations ON DELETE CASCADE,
    subject         text NOT NULL CHECK (subject IN ('user', 'trace')),
    name            text NOT NULL,
    mode            text NOT NULL CHECK (mode IN ('delete', 'anonymise')),
    -- What was called before that is erased, whenever it arrives.
    asked_at        timestamptz NOT NULL DEFAULT now(),
    next_at         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, subject, name)
);
CREATE INDEX log_erasures_next ON log_erasures (next_at);

-- Objects whose log was erased: a proxy may store one afterwards.
CREATE TABLE erased_bodies (
    path      text PRIMARY KEY,
    erased_at timestamptz NOT NULL DEFAULT now(),
    next_at   timestamptz NOT NULL DEFAULT now() + interval '10 minutes'
);
CREATE INDEX erased_bodies_next ON erased_bodies (next_at);
