-- A secret reference is sent to the provider's own address and to the hosts it names, so that nobody who may map it
-- can lead it to a host of their own. Those that integrations send it to today were chosen when there was no list.
ALTER TABLE secret_references ADD COLUMN allowed_hosts text[] NOT NULL DEFAULT '{}';

WITH hosts AS (
    SELECT m.mapping ->> 'secret_reference_id' AS reference, i.organisation_id,
           array_agg(DISTINCT substring(lower(u.url) FROM '^https?://([^/?#@]+)')) AS named
    FROM integrations i
    CROSS JOIN LATERAL jsonb_array_elements(
        CASE jsonb_typeof(i.secret_mappings) WHEN 'array' THEN i.secret_mappings ELSE '[]' END) AS m (mapping)
    CROSS JOIN LATERAL (
        SELECT i.configurations ->> field FROM unnest(ARRAY['custom_host', 'azure_foundry_url', 'huggingface_base_url']) AS field
        UNION
        SELECT o.configurations ->> 'custom_host' FROM integration_models o WHERE o.integration_id = i.id
    ) AS u (url)
    WHERE i.status <> 'archived' AND substring(lower(u.url) FROM '^https?://([^/?#@]+)') IS NOT NULL
    GROUP BY 1, 2
)
UPDATE secret_references r SET allowed_hosts = hosts.named FROM hosts
WHERE hosts.organisation_id = r.organisation_id AND hosts.reference IN (r.id::text, r.slug);
