-- People who sign in: their sessions, one-time links, logins under way, who they are at identity providers, and the
-- mail domains that organisations have proved to be theirs. Of every token only the SHA-256 is stored.

-- A domain belongs to one organisation: whoever proved it first. Nobody else provisions people of it.
CREATE TABLE verified_domains (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    domain          text NOT NULL UNIQUE CHECK (domain = lower(domain) AND char_length(domain) BETWEEN 3 AND 253),
    method          text NOT NULL CHECK (method IN ('dns', 'operator')),
    verified_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX verified_domains_organisation ON verified_domains (organisation_id);

-- Who a person is at an identity provider. The address may change there; issuer and subject do not.
CREATE TABLE user_identities (
    organisation_id uuid NOT NULL,
    issuer          text NOT NULL CHECK (octet_length(issuer) BETWEEN 1 AND 1024),
    subject         text NOT NULL CHECK (octet_length(subject) BETWEEN 1 AND 1024),
    user_id         uuid NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organisation_id, issuer, subject),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX user_identities_user ON user_identities (user_id);

CREATE TABLE sessions (
    id                  uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id     uuid NOT NULL,
    user_id             uuid NOT NULL,
    hash                bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    -- The token before the last rotation: requests that were under way still carry it.
    previous_hash       bytea UNIQUE CHECK (octet_length(previous_hash) = 32),
    provider            text NOT NULL CHECK (provider IN ('oidc', 'saml', 'link')),
    -- Who vouched, and what they call the person and their session, for a logout that comes from there.
    issuer              text CHECK (octet_length(issuer) <= 1024),
    subject             text CHECK (octet_length(subject) <= 1024),
    provider_session    text CHECK (octet_length(provider_session) <= 1024),
    -- For `id_token_hint` of a logout at the provider; sealed.
    id_token            bytea,
    -- What calls that change something repeat in a header; worth nothing without the cookie.
    csrf_token          text NOT NULL,
    client_ip           inet,
    user_agent          text CHECK (char_length(user_agent) <= 255),
    created_at          timestamptz NOT NULL DEFAULT now(),
    rotated_at          timestamptz NOT NULL DEFAULT now(),
    last_used_at        timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX sessions_user ON sessions (user_id, created_at DESC);
CREATE INDEX sessions_provider ON sessions (organisation_id, issuer) WHERE issuer IS NOT NULL;
CREATE INDEX sessions_created ON sessions (created_at);

-- One-time links. A row is deleted by being used.
CREATE TABLE login_links (
    hash            bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    organisation_id uuid NOT NULL,
    user_id         uuid NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX login_links_user ON login_links (user_id);

-- Logins that were sent to an identity provider and are not back yet. A row is deleted by coming back.
CREATE TABLE login_attempts (
    state_hash      bytea PRIMARY KEY CHECK (octet_length(state_hash) = 32),
    -- Of the secret in the browser's cookie.
    browser_hash    bytea NOT NULL CHECK (octet_length(browser_hash) = 32),
    organisation_id uuid NOT NULL REFERENCES organisations,
    provider        text NOT NULL CHECK (provider IN ('oidc', 'saml')),
    issuer          text NOT NULL CHECK (octet_length(issuer) <= 1024),
    return_to       text NOT NULL CHECK (char_length(return_to) <= 2048),
    expires_at      timestamptz NOT NULL
);
CREATE INDEX login_attempts_organisation ON login_attempts (organisation_id);
CREATE INDEX login_attempts_expiry ON login_attempts (expires_at);

-- Ids of assertions and logout tokens that were taken, until they could not be taken again anyway.
CREATE TABLE login_replays (
    hash            bytea PRIMARY KEY CHECK (octet_length(hash) = 32),
    expires_at      timestamptz NOT NULL
);
CREATE INDEX login_replays_expiry ON login_replays (expires_at);

-- Who is a member because of claims leaves when the claims are gone; who was added by hand stays.
ALTER TABLE workspace_members ADD COLUMN is_from_claims boolean NOT NULL DEFAULT false;
