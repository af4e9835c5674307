-- Calls to models, one row for each target that was tried. Proxies write them through their journals, admin those that
-- customers report themselves. Rows are only added; retention drops whole days (`DROP TABLE request_logs_20301231`).
--
-- Rows name what they used by id and slug without foreign keys: they outlive it. Bodies are never here.

CREATE TABLE request_logs (
    -- UUIDv7: its time is `created_at` to the millisecond, so a row is found by its id alone. Of the target that gave
    -- the answer, it is what the client saw as `x-gateway-request-id`.
    id                      uuid NOT NULL,
    -- When the request began; for a target that failed and was replaced by another, when that target was turned to.
    created_at              timestamptz NOT NULL,
    organisation_id         uuid NOT NULL,
    workspace_id            uuid NOT NULL,
    -- Of a token (JWT), the id that it acts under.
    api_key_id              uuid,
    -- The person behind the key, when it is one's own.
    user_id                 uuid,
    -- Slug of the provider of the workspace; null when the caller brought its own credential.
    virtual_key             text,
    -- The integration behind it.
    integration_id          uuid,
    -- Name of the provider (`openai`); null when the call was refused before one was chosen.
    ai_org                  text,
    -- As the answer names it, else as it was asked for.
    ai_model                text,
    -- As it was asked for, when that differs: what limits go by.
    requested_model         text,
    -- Slug of the config, `inline` for one that came with the request, null without one.
    config                  text,
    config_id               uuid,
    config_version_id       uuid,
    prompt_id               uuid,
    prompt_slug             text,
    prompt_version_id       uuid,
    -- Strategy at the root of the config.
    mode                    text NOT NULL DEFAULT 'single'
                            CHECK (mode IN ('single', 'loadbalance', 'fallback', 'conditional')),
    -- Which target of the config: `config.targets[1]`.
    last_used_option_index  text,
    -- Without its query where that could hold a key.
    request_url             text NOT NULL,
    request_method          text NOT NULL,
    -- As the client got it; 499 when it left before the end.
    response_status_code    integer NOT NULL,
    is_success              boolean NOT NULL GENERATED ALWAYS AS (response_status_code BETWEEN 200 AND 299) STORED,
    -- Code of our own error (`AB01` and the like), when the gateway answered itself or ended the answer.
    error_code              text,
    -- Milliseconds: the whole request; for a target that was replaced, its own part of it, retries included.
    response_time           integer NOT NULL,
    -- Milliseconds of it spent waiting for the provider's head, and the rest until then.
    upstream_response_time  integer NOT NULL DEFAULT 0,
    gateway_processing_time integer NOT NULL DEFAULT 0,
    -- Milliseconds until the first content of a stream; null for other answers.
    time_to_first_token     integer,
    -- Tokens: everything the model read, everything it wrote.
    req_units               bigint NOT NULL DEFAULT 0,
    res_units               bigint NOT NULL DEFAULT 0,
    total_units             bigint NOT NULL GENERATED ALWAYS AS (req_units + res_units) STORED,
    -- Parts of the above.
    cache_read_tokens       bigint NOT NULL DEFAULT 0,
    cache_write_tokens      bigint NOT NULL DEFAULT 0,
    reasoning_tokens        bigint NOT NULL DEFAULT 0,
    audio_input_tokens      bigint NOT NULL DEFAULT 0,
    audio_output_tokens     bigint NOT NULL DEFAULT 0,
    -- The tokens are our estimate: the provider reported none, or the answer was cut before it did.
    usage_estimated         boolean NOT NULL DEFAULT false,
    -- The provider's own figures, as it wrote them; null when it wrote none.
    usage                   jsonb,
    -- US cents, exact; null when no price is known.
    cost                    numeric(24, 10),
    cost_currency           text NOT NULL DEFAULT 'USD',
    -- The model's name in the price list, and the cents per unit that were used, so that re-pricing is a query.
    price_model             text,
    unit_prices             jsonb,
    -- Tells one edition of the price list from another.
    price_version           text,
    cache_status            text NOT NULL DEFAULT 'DISABLED',
    -- `simple` or `semantic`; null without a hit.
    cache_type              text,
    -- Retries of this target it took; -1 when they were used up without success.
    retry_success_count     smallint NOT NULL DEFAULT 0,
    -- Which target of the request this was, from 0: above 0 others had failed before.
    attempt                 smallint NOT NULL DEFAULT 0,
    -- The answer was a stream.
    stream_mode             boolean NOT NULL DEFAULT false,
    -- The call was passed through without being understood.
    is_proxy_call           boolean NOT NULL DEFAULT false,
    -- What the client calls the larger whole; made up when it does not say.
    trace_id                text NOT NULL,
    span_id                 text,
    span_name               text,
    parent_span_id          text,
    -- The same on all rows of one request.
    internal_trace_id       uuid NOT NULL,
    -- Flat: strings, numbers, booleans. Of the workspace, the key and the request.
    metadata                jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(metadata) = 'object'),
    -- `proxy` for calls through the gateway, `custom` for those that were reported.
    source                  text NOT NULL DEFAULT 'proxy',
    -- What the client's SDK says of itself.
    runtime                 text,
    runtime_version         text,
    sdk_version             text,
    -- Results of guardrails, before and after.
    hook_results            jsonb,
    -- Where the bodies are in the log store; null when they were not kept.
    body_key                text,
    PRIMARY KEY (created_at, id)
) PARTITION BY RANGE (created_at);

-- Lists go by time inside a workspace or an organisation; other filters are checked on the way, except those that
-- find few among very many.
CREATE INDEX request_logs_workspace ON request_logs (workspace_id, created_at DESC, id DESC);
CREATE INDEX request_logs_organisation ON request_logs (organisation_id, created_at DESC, id DESC);
CREATE INDEX request_logs_trace ON request_logs (trace_id);
CREATE INDEX request_logs_failed ON request_logs (workspace_id, response_status_code, created_at DESC)
    WHERE response_status_code < 200 OR response_status_code > 299;
CREATE INDEX request_logs_metadata ON request_logs USING gin (metadata jsonb_path_ops);

-- Makes the partition of a day (UTC) unless it exists. Attached instead of created in place, so that readers and
-- writers of other days do not wait.
CREATE FUNCTION request_logs_day(day date) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    partition text := 'request_logs_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('request_logs_day'));
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE request_logs INCLUDING ALL)', partition);
    EXECUTE format('ALTER TABLE request_logs ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', partition,
        day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
END $$;

-- What a shipper could not store: one bad record must not hold up the others, nor be lost without a word.
CREATE TABLE rejected_records (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    -- Name of the segment it stood in.
    segment     text NOT NULL,
    -- As it was framed there.
    record      bytea NOT NULL,
    reason      text NOT NULL,
    rejected_at timestamptz NOT NULL DEFAULT now()
);
