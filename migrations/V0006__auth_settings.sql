-- How people and tokens of an organisation are recognised: JWKS, OIDC, SAML, SCIM. Secrets are not in the object: of
-- the SCIM token only the hash is stored, and it is unique because the token alone says whose directory is speaking.

ALTER TABLE organisations ADD COLUMN auth_settings jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(auth_settings) = 'object');
ALTER TABLE organisations ADD COLUMN scim_token_hash bytea UNIQUE CHECK (octet_length(scim_token_hash) = 32);
