-- That an owner lets an identity provider sign them in: before their first login by it, because whoever may set an identity
-- provider up could otherwise be anybody. A row is deleted by that login.
CREATE TABLE owner_links (
    organisation_id uuid NOT NULL,
    user_id         uuid NOT NULL,
    issuer          text NOT NULL CHECK (octet_length(issuer) BETWEEN 1 AND 1024),
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (user_id, issuer),
    FOREIGN KEY (organisation_id, user_id) REFERENCES users (organisation_id, id)
);
CREATE INDEX owner_links_expiry ON owner_links (expires_at);
