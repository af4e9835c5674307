-- Our SAML key can be replaced without a gap: a second one stands beside it, in our metadata and for assertions that are
-- encrypted for it, before it signs or after it did. In the same row, so that who knows of one key still finds one.

ALTER TABLE saml_keys
    -- DER.
    ADD COLUMN standby_certificate bytea CHECK (octet_length(standby_certificate) BETWEEN 1 AND 16384),
    ADD COLUMN sealed_standby_key  bytea,
    ADD COLUMN standby_since       timestamptz,
    ADD CONSTRAINT saml_keys_standby_is_whole CHECK (num_nulls(standby_certificate, sealed_standby_key, standby_since) IN (0, 3));
