-- SAML: the key pair with which we sign requests and open assertions, one for each organisation. And mail domains that an
-- organisation says are its own, until it has proved it (then they stand in verified_domains, under the same id).

CREATE TABLE saml_keys (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL UNIQUE REFERENCES organisations,
    -- DER.
    certificate     bytea NOT NULL CHECK (octet_length(certificate) BETWEEN 1 AND 16384),
    sealed_key      bytea NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now()
);

-- Anybody may claim any domain: a claim is worth nothing until it is proved, so several organisations may have the same.
CREATE TABLE domain_claims (
    id              uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    organisation_id uuid NOT NULL REFERENCES organisations,
    domain          text NOT NULL CHECK (domain = lower(domain) AND char_length(domain) BETWEEN 3 AND 253),
    -- What the DNS record must hold. No secret: it is published there.
    token           text NOT NULL CHECK (char_length(token) BETWEEN 16 AND 255),
    created_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (organisation_id, domain)
);
