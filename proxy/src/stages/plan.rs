//! Headers → target: which provider, at which address, with which credential. Pure but for the dialer's reading of a
//! custom host, which resolves nothing.

use super::identify::{service_key, strip_bearer};
use crate::dial::{Dialer, Origin};
use crate::headers::GatewayHeaders;
use crate::hosts::Hosts;
use crate::providers::{Provider, Providers};
use crate::refusal::Refusal;
use http::HeaderValue;
use std::sync::Arc;
use std::time::Duration;

const NO_ADDRESS: &str = "this provider has no address of its own, so the request must name one";

#[derive(Debug, Clone)]
pub struct Target {
    pub provider: Arc<Provider>,
    pub origin: Arc<Origin>,
    /// The provider's own credential, as the caller sent it.
    pub credential: Option<HeaderValue>,
    /// Longest wait for the head of the answer.
    pub timeout: Duration,
}

pub fn plan(
    headers: &GatewayHeaders<'_>,
    providers: &Providers,
    hosts: &Hosts,
    dialer: &Dialer,
    default_timeout: Duration,
) -> Result<Target, Refusal> {
    if headers.config.is_some() {
        return Err(Refusal::not_implemented("x-gateway-config"));
    }
    if headers.virtual_key.is_some() {
        return Err(Refusal::not_implemented("x-gateway-virtual-key"));
    }
    let name = headers.provider.ok_or_else(Refusal::missing_provider)?;
    let name = name.to_str().map_err(|_| Refusal::invalid_provider("?"))?.trim();
    let provider = providers.get(name).ok_or_else(|| Refusal::invalid_provider(name))?.clone();
    let origin = match headers.custom_host {
        None => provider.origin.clone().ok_or_else(|| Refusal::invalid_custom_host(NO_ADDRESS))?,
        Some(url) => {
            let url = url.to_str().map_err(|_| Refusal::invalid_custom_host("it is not text"))?;
            hosts.origin(dialer, url).map_err(Refusal::invalid_custom_host)?
        }
    };
    Ok(Target { origin, credential: credential(headers), timeout: timeout(headers, default_timeout)?, provider })
}

/// With a plainly named provider, `Authorization` is the provider's credential. `x-api-key` is it only when the
/// service key came in its own header; otherwise it may be the service key. That one never leaves the gateway, also
/// when a client sends it in both places.
fn credential(headers: &GatewayHeaders<'_>) -> Option<HeaderValue> {
    let service_key = service_key(headers);
    let x_api_key = headers.api_key.and(headers.x_api_key);
    let mut sent = [headers.authorization, x_api_key].into_iter().flatten();
    sent.find(|value| Some(strip_bearer(value)) != service_key).cloned()
}

fn timeout(headers: &GatewayHeaders<'_>, default: Duration) -> Result<Duration, Refusal> {
    let Some(value) = headers.request_timeout else { return Ok(default) };
    let millis: Option<u64> = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    match millis {
        Some(millis @ 1..) => Ok(Duration::from_millis(millis)),
        _ => Err(Refusal::invalid_header("x-gateway-request-timeout", "a whole number of milliseconds above 0")),
    }
}
