-- Keys that are rotated when their policy says so, the letters that announce it, and workspaces that organisation-wide
-- guardrails leave out.
ALTER TABLE api_keys
    -- Nobody has seen the present secret: it was drawn by a schedule or for somebody who just joined. Rotating shows a
    -- fresh one without a new transition.
    ADD COLUMN is_unclaimed boolean NOT NULL DEFAULT false,
    -- The rotation and the expiry that the owners were told of, so that they are told once of each.
    ADD COLUMN rotation_reminded_for text,
    ADD COLUMN expiry_reminded_for timestamptz;

-- Times in policies have one form, in which the order of texts is the order of times.
CREATE INDEX api_keys_next_rotation ON api_keys ((rotation_policy ->> 'next_rotation_at') COLLATE "C")
    WHERE rotation_policy IS NOT NULL AND status IN ('active', 'exhausted');

-- Mail that follows from a change, written in its transaction and handed over later by whichever admin comes first.
-- Never holds a secret.
CREATE TABLE letters (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    kind            text NOT NULL,
    recipient       text NOT NULL,
    subject         text NOT NULL,
    body            text NOT NULL,
    attempts        integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX letters_due ON letters (next_attempt_at);

ALTER TABLE workspaces
    ADD COLUMN excluded_from_input_guardrails boolean NOT NULL DEFAULT false,
    ADD COLUMN excluded_from_output_guardrails boolean NOT NULL DEFAULT false;
