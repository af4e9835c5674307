//! The fields of a record in their order: as they are declared, which is how derived code writes and reads them.

use super::packed::{Packed, pack_list};
use super::{FIELDS, Record, fields_of};

/// Most records have room in it.
const ROOM: usize = 768;

pub fn pack(record: &Record<'_>, out: &mut Vec<u8>) {
    out.reserve(ROOM);
    pack_list(FIELDS.into(), out);
    record.id.pack(out);
    record.internal_trace_id.pack(out);
    record.organisation_id.pack(out);
    record.workspace_id.pack(out);
    record.api_key_id.pack(out);
    record.user_id.pack(out);
    record.virtual_key.pack(out);
    record.integration_id.pack(out);
    record.ai_org.pack(out);
    record.requested_model.pack(out);
    record.answered_model.pack(out);
    record.config.pack(out);
    record.config_id.pack(out);
    record.config_version_id.pack(out);
    record.mode.pack(out);
    record.option.pack(out);
    record.method.pack(out);
    record.url.pack(out);
    record.status.pack(out);
    record.error_code.pack(out);
    record.response_time.pack(out);
    record.upstream_time.pack(out);
    record.gateway_time.pack(out);
    record.first_token_time.pack(out);
    record.usage.pack(out);
    record.estimate.pack(out);
    record.service_tier.pack(out);
    record.retries.pack(out);
    record.attempt.pack(out);
    record.is_stream.pack(out);
    record.is_relayed.pack(out);
    record.trace_id.pack(out);
    record.span_id.pack(out);
    record.span_name.pack(out);
    record.parent_span_id.pack(out);
    record.metadata.pack(out);
    record.runtime.pack(out);
    record.runtime_version.pack(out);
    record.sdk_version.pack(out);
    record.turned_after.pack(out);
    record.has_body.pack(out);
    record.charges.pack(out);
    record.parsed_after.pack(out);
    record.dropped_params.pack(out);
    record.hook_results.pack(out);
    record.prompt_id.pack(out);
    record.prompt_version_id.pack(out);
    record.prompt_slug.pack(out);
    record.cache_status.pack(out);
    record.cache_type.pack(out);
    record.cache_time.pack(out);
}

/// None of bytes that another version wrote, or that are no record.
pub fn unpack(bytes: &[u8]) -> Option<Record<'_>> {
    /// What a list of so many fields begins with.
    const HEAD: usize = 3;
    if fields_of(bytes)? != FIELDS {
        return None;
    }
    let rest = &mut bytes.get(HEAD..)?;
    let record = Record {
        id: Packed::unpack(rest)?,
        internal_trace_id: Packed::unpack(rest)?,
        organisation_id: Packed::unpack(rest)?,
        workspace_id: Packed::unpack(rest)?,
        api_key_id: Packed::unpack(rest)?,
        user_id: Packed::unpack(rest)?,
        virtual_key: Packed::unpack(rest)?,
        integration_id: Packed::unpack(rest)?,
        ai_org: Packed::unpack(rest)?,
        requested_model: Packed::unpack(rest)?,
        answered_model: Packed::unpack(rest)?,
        config: Packed::unpack(rest)?,
        config_id: Packed::unpack(rest)?,
        config_version_id: Packed::unpack(rest)?,
        mode: Packed::unpack(rest)?,
        option: Packed::unpack(rest)?,
        method: Packed::unpack(rest)?,
        url: Packed::unpack(rest)?,
        status: Packed::unpack(rest)?,
        error_code: Packed::unpack(rest)?,
        response_time: Packed::unpack(rest)?,
        upstream_time: Packed::unpack(rest)?,
        gateway_time: Packed::unpack(rest)?,
        first_token_time: Packed::unpack(rest)?,
        usage: Packed::unpack(rest)?,
        estimate: Packed::unpack(rest)?,
        service_tier: Packed::unpack(rest)?,
        retries: Packed::unpack(rest)?,
        attempt: Packed::unpack(rest)?,
        is_stream: Packed::unpack(rest)?,
        is_relayed: Packed::unpack(rest)?,
        trace_id: Packed::unpack(rest)?,
        span_id: Packed::unpack(rest)?,
        span_name: Packed::unpack(rest)?,
        parent_span_id: Packed::unpack(rest)?,
        metadata: Packed::unpack(rest)?,
        runtime: Packed::unpack(rest)?,
        runtime_version: Packed::unpack(rest)?,
        sdk_version: Packed::unpack(rest)?,
        turned_after: Packed::unpack(rest)?,
        has_body: Packed::unpack(rest)?,
        charges: Packed::unpack(rest)?,
        parsed_after: Packed::unpack(rest)?,
        dropped_params: Packed::unpack(rest)?,
        hook_results: Packed::unpack(rest)?,
        prompt_id: Packed::unpack(rest)?,
        prompt_version_id: Packed::unpack(rest)?,
        prompt_slug: Packed::unpack(rest)?,
        cache_status: Packed::unpack(rest)?,
        cache_type: Packed::unpack(rest)?,
        cache_time: Packed::unpack(rest)?,
    };
    rest.is_empty().then_some(record)
}
