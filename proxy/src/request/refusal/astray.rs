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

    /// The page with the interface, which the control plane serves and the proxy does not.
    pub fn docs_elsewhere() -> Self {
        let message = "Not Found: the page is /docs at the control plane's own address; GET /v1/openapi.json is the document here";
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

    /// The same of one whose address is known but for a part, as its region. `fields` say that part.
    pub fn missing_place(provider: &str, place: &str, fields: &[String]) -> Self {
        let message = format!(
            "the provider `{provider}` is at another address for each account, and none was sent: its {place} is not known; set \
             {}, or give the whole address as x-gateway-custom-host",
            set_by(fields)
        );
        Self::invalid(Code::InvalidCustomHost, message).about("x-gateway-custom-host")
    }

    /// A part of a provider's path that nobody said.
    pub fn missing_path_place(provider: &str, place: &str, fields: &[String]) -> Self {
        let message = format!("neither the request nor the account says its {place}; set {}", set_by(fields));
        Self::endpoint_not_supported(provider, message)
    }

    /// A slug that the workspace does not have, named by the request itself: in its model, or in a header.
    pub fn misnamed_slug(slug: &str, meant: Option<&str>, param: &'static str) -> Self {
        let advice = match meant {
            Some(meant) => format!("did you mean `@{meant}`?"),
            None => "GET /v1/models lists what there is".to_owned(),
        };
        let message = format!("there is no provider `@{slug}` in this workspace; {advice}");
        Self::invalid(Code::InvalidProvider, message).about(param)
    }

    /// No provider is named, and something in the request shows what was meant instead.
    pub fn missing_provider_because(why: &str) -> Self {
        let plain = Self::missing_provider();
        Self { message: format!("{}; {why}", plain.message).into(), ..plain }
    }

    /// A key that nobody knows, which came where a provider's own key could stand too.
    pub fn invalid_key_in(place: &str) -> Self {
        let plain = Self::invalid_api_key();
        let message = format!(
            "{}: {place} was read as the gateway's key, since x-gateway-api-key was not sent; a provider's own key needs that \
             header beside it, and x-gateway-provider",
            plain.message
        );
        Self { message: message.into(), ..plain }
    }

    /// No key, but a header whose name is nearly that of one.
    pub fn misspelt_api_key(sent: &str) -> Self {
        let plain = Self::missing_api_key();
        Self { message: format!("{}; x-gateway-{sent} is no header of the gateway", plain.message).into(), ..plain }
    }

    /// Whether the target is refused for what it is, and will be until somebody mends it: neither a limit nor an outage.
    pub fn is_of_target(&self) -> bool {
        matches!(
            self.code,
            Code::InvalidProvider
                | Code::ProviderNotAvailable
                | Code::ModelNotAllowed
                | Code::InvalidCustomHost
                | Code::EndpointNotSupported
                | Code::NotImplemented
        )
    }
}

/// How a part of an address or a path is said: in the account or the config by this name, in a request by that.
fn set_by(fields: &[String]) -> String {
    match fields.first() {
        Some(field) => {
            format!("{field} in the integration or the config, or send x-gateway-{}", field.replace('_', "-"))
        }
        None => "it in the integration or the config".to_owned(),
    }
}
