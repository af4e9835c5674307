//! The account of one model while its entry is read.

use super::vendors::{Access, Vendor};
use crate::import::address::azure_resource;
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::{Located, Source};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

const ADDRESSES: [&str; 2] = ["api_base", "base_url"];
const AZURE_API_VERSION: &str = "2024-10-21";
const ENTRA: [(&str, &str, &str); 3] = [
    ("tenant_id", "azure_entra_tenant_id", "AZURE_TENANT_ID"),
    ("client_id", "azure_entra_client_id", "AZURE_CLIENT_ID"),
    ("client_secret", "azure_entra_client_secret", "AZURE_CLIENT_SECRET"),
];

/// What an entry lacks without which no account can be made of it.
pub fn missing(vendor: &Vendor, params: &Source, import: &Import) -> Option<String> {
    let is_resource = |base: &str| azure_resource(base).is_some() || import.variable_in(base).is_some();
    match vendor.access {
        Access::Azure if !params.text("api_base").is_some_and(is_resource) => {
            Some("`api_base` is no address of an Azure OpenAI resource: store it as a provider by hand".to_owned())
        }
        Access::Address if ADDRESSES.iter().all(|name| params.text(name).is_none()) => {
            Some(format!("`{}` needs `api_base`, which is missing", vendor.prefix))
        }
        _ => None,
    }
}

/// What makes two models share an account.
#[derive(Default)]
pub struct Settings {
    pub key: Option<String>,
    pub configurations: Map<String, Value>,
}

impl Settings {
    /// The same text for the same settings. It holds no credential: variables are in their places.
    pub fn text(&self) -> String {
        json!([self.key, self.configurations]).to_string()
    }
}

/// What an entry says of its account.
pub struct ReadAccount {
    pub settings: Settings,
    /// The model's name there.
    pub model: String,
    /// Azure's deployment of it.
    pub deployment: Option<Value>,
    /// Variables that LiteLLM reads without being told, and what they hold. They are told once for each account.
    pub implied: Vec<(String, &'static str)>,
}

pub struct Reading<'a> {
    import: &'a mut Import,
    vendor: &'static Vendor,
    params: &'a mut Source,
    settings: Settings,
    implied: Vec<(String, &'static str)>,
}

impl<'a> Reading<'a> {
    pub fn new(import: &'a mut Import, vendor: &'static Vendor, params: &'a mut Source) -> Self {
        Self { import, vendor, params, settings: Settings::default(), implied: Vec::new() }
    }

    pub fn read(mut self, model: &str, base: Option<&str>) -> ReadAccount {
        let mut model = model.to_owned();
        let mut deployment = None;
        match self.vendor.access {
            Access::Azure => {
                let deployed = azure_deployment_name(&model).to_owned();
                model = base.map_or(deployed.as_str(), |base| base.rsplit('/').next().unwrap_or(base)).to_owned();
                deployment = Some(self.azure(&deployed, &model));
            }
            Access::Aws => model = self.aws(&model),
            Access::Vertex => self.vertex(),
            Access::Address => {
                self.address();
                let own = format!("{}_API_KEY", slug::variable(self.vendor.prefix));
                self.key(Some(&own));
            }
            Access::Key(name) => {
                self.address();
                self.key(Some(name));
            }
            Access::Open => {
                self.address();
                self.key(None);
            }
        }
        if self.vendor.id == "openai" {
            self.configure("organization", "openai_organization");
        }
        self.headers();
        ReadAccount { settings: self.settings, model, deployment, implied: self.implied }
    }

    fn own_name(&self, field: &str) -> String {
        slug::variable(&format!("{} {field}", self.vendor.prefix))
    }

    fn set(&mut self, ours: &str, value: impl Into<Value>) {
        self.settings.configurations.insert(ours.to_owned(), value.into());
    }

    /// A variable that LiteLLM reads by itself where the entry says nothing.
    fn implied(&mut self, variable: &str, what: &'static str) -> String {
        self.implied.push((variable.to_owned(), what));
        format!("${{env:{variable}}}")
    }

    /// Returns whether the entry has a key.
    fn key(&mut self, implied: Option<&str>) -> bool {
        let Some(key) = self.params.take_text("api_key") else {
            self.settings.key = implied.map(|name| self.implied(name, "the key"));
            return false;
        };
        let own_name = self.own_name("key");
        self.settings.key = Some(self.import.credential(&key.location, &key.value, &own_name));
        self.import.mapped(key.location, "key of the integration");
        true
    }

    /// A text of the account: a variable, or what stands there.
    fn configure(&mut self, name: &str, ours: &str) -> bool {
        let Some(text) = self.params.take_text(name) else { return false };
        self.set(ours, self.import.text(&text.value));
        self.import.mapped(text.location, format!("configurations.{ours} of the integration"));
        true
    }

    fn configure_secret(&mut self, name: &str, ours: &str) -> bool {
        let Some(text) = self.params.take_text(name) else { return false };
        let own_name = self.own_name(name);
        let variable = self.import.credential(&text.location, &text.value, &own_name);
        self.set(ours, variable);
        self.import.mapped(text.location, format!("configurations.{ours} of the integration"));
        true
    }

    fn address(&mut self) {
        let found = ADDRESSES.iter().find_map(|name| self.params.take_text(name));
        let Some(address) = found else { return };
        // The client of Anthropic adds it, those of others do not.
        let path = if self.vendor.id == "anthropic" { "/v1" } else { "" };
        let own_name = self.own_name("address");
        let host = self.import.address(&address, path, &own_name);
        self.set("custom_host", host);
        self.import.mapped(address.location, "configurations.custom_host of the integration");
    }

    fn azure(&mut self, deployment: &str, model: &str) -> Value {
        if let Some(base) = self.params.take_text("api_base") {
            if let Some(resource) = azure_resource(&base.value) {
                self.set("azure_resource_name", resource);
                self.import.mapped(base.location, "configurations.azure_resource_name of the integration");
            } else if let Some(variable) = self.import.variable_in(&base.value) {
                let what = format!("the resource's name, the first word of the address in {variable},");
                let own_name = format!("{variable}_RESOURCE");
                let resource = self.import.wanted(&base.location, &base.value, &own_name, &what);
                self.set("azure_resource_name", resource);
            }
        }
        self.azure_authentication();
        let mut version = json!(AZURE_API_VERSION);
        if let Some(given) = self.params.take_text("api_version") {
            version = self.import.text(&given.value).into();
            self.import.mapped(given.location, "azure_api_version of the integration's deployment");
        }
        json!({
            "azure_deployment_name": escaped(deployment),
            "azure_api_version": version,
            "azure_model_slug": escaped(model),
        })
    }

    /// An application of Entra where the entry has a part of one, otherwise a key.
    fn azure_authentication(&mut self) {
        let is_entra = ENTRA.iter().any(|(theirs, ..)| self.params.text(theirs).is_some());
        self.set("azure_auth_mode", if is_entra { "entra" } else { "default" });
        self.key(if is_entra { None } else { Some("AZURE_API_KEY") });
        if !is_entra {
            return;
        }
        for (theirs, ours, implied) in ENTRA {
            let is_secret = theirs == "client_secret";
            let is_there = if is_secret { self.configure_secret(theirs, ours) } else { self.configure(theirs, ours) };
            if !is_there {
                let value = self.implied(implied, "a part of the application");
                self.set(ours, value);
            }
        }
    }

    /// Returns the model without the words that LiteLLM puts before it.
    fn aws(&mut self, model: &str) -> String {
        let (region, model) = aws_model(model);
        if !self.configure("aws_region_name", "aws_region") {
            match region {
                Some(region) => self.set("aws_region", region),
                None => {
                    let region = self.implied("AWS_REGION_NAME", "the region");
                    self.set("aws_region", region);
                }
            }
        }
        let has_api_key = self.key(None);
        let has_keys = self.configure_secret("aws_access_key_id", "aws_access_key_id")
            & self.configure_secret("aws_secret_access_key", "aws_secret_access_key");
        let has_role = self.configure("aws_role_name", "aws_role_arn");
        self.configure_secret("aws_external_id", "aws_external_id");
        let auth = match (has_api_key, has_role, has_keys) {
            (true, ..) => "apiKey",
            (_, true, _) => "assumedRole",
            (.., true) => "accessKey",
            _ => "serviceRole",
        };
        self.set("aws_auth_type", auth);
        model.to_owned()
    }

    fn vertex(&mut self) {
        self.configure("vertex_project", "vertex_project_id");
        if !self.configure("vertex_location", "vertex_region") {
            self.set("vertex_region", "us-central1");
        }
        let mut auth = if self.key(None) { "basic" } else { "workloadIdentity" };
        if let Some(credentials) = self.params.take_text("vertex_credentials") {
            auth = "serviceAccount";
            let value = self.service_account(credentials);
            self.set("vertex_service_account_json", value);
        }
        self.set("vertex_auth_type", auth);
    }

    /// LiteLLM takes the document or a path to it, also out of a variable.
    fn service_account(&mut self, credentials: Located<String>) -> String {
        let Located { location, value } = credentials;
        if let Some(variable) = self.import.variable_in(&value) {
            self.import.unmapped(location, format!("{variable} must hold the JSON document, not a path to it"));
            return format!("${{env:{variable}}}");
        }
        let is_path = !value.contains(['{', '}', '$']) && !value.contains(char::is_control);
        if !is_path {
            let own_name = self.own_name("credentials");
            return self.import.credential(&location, &value, &own_name);
        }
        let why = match value.starts_with('/') {
            true => "`portcullis apply` reads this file",
            false => "`portcullis apply` reads this file, and looks for it below the folder that it applies",
        };
        self.import.unmapped(location, why);
        format!("${{file:{value}}}")
    }

    fn headers(&mut self) {
        let Some(headers) = self.params.take_section("extra_headers") else { return };
        let mut sent = Map::new();
        for (name, header) in headers.into_fields() {
            match header.value().as_str() {
                Some(text) => {
                    // Whether a header holds a credential cannot be seen.
                    let own_name = self.own_name(&name);
                    sent.insert(name, self.import.credential(&header.location, text, &own_name).into());
                    self.import.mapped(header.location, "configurations.custom_headers of the integration");
                }
                None => self.import.unmapped(header.location, "no text"),
            }
        }
        if !sent.is_empty() {
            self.set("custom_headers", sent);
        }
    }
}

/// The deployment without the words by which LiteLLM chooses a wire format.
fn azure_deployment_name(model: &str) -> &str {
    let words = ["gpt5_series/", "o_series/", "responses/"];
    words.iter().find_map(|word| model.strip_prefix(word)).unwrap_or(model)
}

/// The region in a model's name or ARN, and the name without it and without words that choose a wire format.
fn aws_model(model: &str) -> (Option<&str>, &str) {
    let words = ["converse", "invoke", "converse_like"];
    let (mut region, mut rest) = (None, model);
    while let Some((word, after)) = rest.split_once('/') {
        match word {
            word if words.contains(&word) => {}
            word if region.is_none() && is_aws_region(word) => region = Some(word),
            _ => break,
        }
        rest = after;
    }
    let of_arn = || rest.strip_prefix("arn:")?.split(':').nth(2).filter(|region| is_aws_region(region));
    (region.or_else(of_arn), rest)
}

/// `eu-west-1`.
fn is_aws_region(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit());
    let is_word = |part: &&str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_lowercase());
    match parts.split_last() {
        Some((number, words)) => words.len() >= 2 && is_number(number) && words.iter().all(is_word),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_and_words_are_no_part_of_a_model_of_aws() {
        for (model, expected) in [
            ("eu-west-1/anthropic.claude-v2", (Some("eu-west-1"), "anthropic.claude-v2")),
            ("converse/us-gov-west-1/x", (Some("us-gov-west-1"), "x")),
            ("converse_like/x", (None, "x")),
            ("arn:aws:bedrock:eu-central-1:1:x/y", (Some("eu-central-1"), "arn:aws:bedrock:eu-central-1:1:x/y")),
            ("x/y", (None, "x/y")),
        ] {
            assert_eq!(aws_model(model), expected, "{model}");
        }
    }
}
