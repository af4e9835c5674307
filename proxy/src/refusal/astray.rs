//! Requests that went astray: each refusal says how the request was read, and what was probably meant.

use super::{Refusal, RefusalCode as Code, RefusalKind as Kind};

impl Refusal {
    /// A path that begins like one of the control plane and names no provider.
    pub fn no_operation(method: &str, path: &str, meant: &str) -> Self {
        let message = format!("there is no operation {method} {path}; did you mean {meant}?");
        Self::new(404, Kind::NotFound, Code::NotFound, message)
    }

    /// A path outside `/v1`.
    pub fn outside_api(meant: Option<&str>) -> Self {
        let message = match meant {
            Some(meant) => format!("Not Found: the API is under /v1; did you mean {meant}?"),
            None => "Not Found: the API is under /v1".to_owned(),
        };
        Self::new(404, Kind::NotFound, Code::NotFound, message)
    }

    /// A base URL that ends in `/v1` before a path that begins with it.
    pub fn doubled_version(meant: &str) -> Self {
        let message = format!("the path has /v1 twice; did you mean {meant}? The base URL ends in /v1 already");
        Self::new(404, Kind::NotFound, Code::NotFound, message)
    }

    /// A key was sent, but where the provider's belongs.
    pub fn key_read_as_providers(provider: &str) -> Self {
        let message = format!(
            "no gateway key was sent: since the request names the provider `{provider}`, Authorization was read as that \
             provider's own key; send the gateway's key as x-gateway-api-key"
        );
        Self::new(401, Kind::Authentication, Code::MissingApiKey, message)
    }

    pub fn unknown_provider(name: &str, meant: Option<&str>) -> Self {
        match meant {
            Some(meant) => {
                let message = format!("unknown provider `{name}`: did you mean `{meant}`?");
                Self::invalid(Code::InvalidProvider, message).about("x-gateway-provider")
            }
            None => Self::invalid_provider(name),
        }
    }

    /// A provider that every customer has at an address of its own.
    pub fn missing_custom_host(provider: &str) -> Self {
        let message = format!(
            "the provider `{provider}` has no address of its own and none was sent: give one as x-gateway-custom-host, or as \
             custom_host of the config or the integration"
        );
        Self::invalid(Code::InvalidCustomHost, message).about("x-gateway-custom-host")
    }

    /// The same of one whose address is known but for a part, as its region.
    pub fn missing_place(provider: &str, place: &str) -> Self {
        let message = format!(
            "the provider `{provider}` is at another address for each account, and none was sent: its {place} is not known; set \
             it in the integration or the config, or give the whole address as x-gateway-custom-host"
        );
        Self::invalid(Code::InvalidCustomHost, message).about("x-gateway-custom-host")
    }
}
