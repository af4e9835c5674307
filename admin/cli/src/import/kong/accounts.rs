//! The account of one target: its credentials (`auth`) and where it is reached (`model.options`).

use crate::import::address::before_operation;
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::{Located, Location, Source};
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

const AZURE_API_VERSION: &str = "2024-10-21";
/// Options of a model that requests may set themselves.
const DEFAULT_PARAMS: &[&str] = &["max_tokens", "temperature", "top_p", "top_k"];

/// What a target lacks without which no account can be made of it.
pub fn missing(id: &str, target: &Value) -> Option<&'static str> {
    let has = |pointer: &str| target.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    match id {
        "azure-openai" if !has("/model/options/azure_instance") => Some("no `azure_instance`, which the gateway needs"),
        "azure-openai" if !has("/model/options/azure_deployment_id") && !has("/model/name") => {
            Some("no `azure_deployment_id`, which the gateway needs")
        }
        "bedrock" if !has("/model/options/bedrock/aws_region") => Some("no `aws_region`, which the gateway needs"),
        _ => None,
    }
}

/// An integration while its target is read.
pub struct Account<'a> {
    id: &'static str,
    slug: &'a str,
    location: Location,
    import: &'a mut Import,
    key: Option<String>,
    configurations: Map<String, Value>,
}

impl<'a> Account<'a> {
    pub fn new(id: &'static str, slug: &'a str, location: Location, import: &'a mut Import) -> Self {
        Self { id, slug, location, import, key: None, configurations: Map::new() }
    }

    fn own_name(&self, field: &str) -> String {
        slug::variable(&format!("{} {field}", self.slug))
    }

    fn set(&mut self, ours: &str, value: impl Into<Value>) {
        self.configurations.insert(ours.to_owned(), value.into());
    }

    fn configure(&mut self, source: &mut Source, theirs: &str, ours: &str, is_secret: bool) -> bool {
        let Some(text) = source.take_text(theirs) else { return false };
        let value = if is_secret {
            let own_name = self.own_name(theirs);
            self.import.credential(&text.location, &text.value, &own_name)
        } else {
            self.import.text(&text.value)
        };
        self.set(ours, value);
        self.import.mapped(text.location, format!("configurations.{ours} of the integration"));
        true
    }

    pub fn read_auth(&mut self, auth: Option<Source>) {
        let mut auth = auth.unwrap_or_else(Source::nothing);
        for field in ["header_value", "param_value"] {
            if let Some(key) = auth.take_text(field) {
                let text = key.value.strip_prefix("Bearer ").unwrap_or(&key.value);
                let own_name = self.own_name("key");
                self.key = Some(self.import.credential(&key.location, text, &own_name));
                self.import.mapped(key.location, "key of the integration");
            }
        }
        match self.id {
            "bedrock" => self.read_aws(&mut auth),
            "azure-openai" => self.read_entra(&mut auth),
            _ => {}
        }
        self.import.unmapped_rest(auth, |field| {
            match field {
                "header_name" | "param_name" | "param_location" => "the gateway knows how each provider takes its key",
                _ => "set it at the integration's configurations (docs/providers.md)",
            }
            .to_owned()
        });
    }

    fn read_aws(&mut self, auth: &mut Source) {
        let has_keys = self.configure(auth, "aws_access_key_id", "aws_access_key_id", true)
            & self.configure(auth, "aws_secret_access_key", "aws_secret_access_key", true);
        let kind = match (self.key.is_some(), has_keys) {
            (true, _) => "apiKey",
            (_, true) => "accessKey",
            _ => "serviceRole",
        };
        self.set("aws_auth_type", kind);
    }

    fn read_entra(&mut self, auth: &mut Source) {
        let entra = [
            self.configure(auth, "azure_tenant_id", "azure_entra_tenant_id", false),
            self.configure(auth, "azure_client_id", "azure_entra_client_id", false),
            self.configure(auth, "azure_client_secret", "azure_entra_client_secret", true),
        ];
        let managed = auth.take_flag("azure_use_managed_identity");
        let mode = match (entra == [true; 3], managed.as_ref().is_some_and(|managed| managed.value)) {
            (true, _) => "entra",
            (_, true) => "managed",
            _ => "default",
        };
        if let Some(managed) = managed {
            self.import.mapped(managed.location, "configurations.azure_auth_mode of the integration");
        }
        self.set("azure_auth_mode", mode);
    }

    /// Takes what requests may say themselves out of the options.
    pub fn default_params(&mut self, options: &mut Source) -> Map<String, Value> {
        let mut defaults = Map::new();
        for name in DEFAULT_PARAMS {
            if let Some(number) = options.take_weight(name) {
                let is_whole = number.value.fract() == 0.0;
                let value = if is_whole { Value::from(number.value as u64) } else { Value::from(number.value) };
                defaults.insert((*name).to_owned(), value);
                self.import.mapped(number.location, "default_params of the target");
            }
        }
        defaults
    }

    pub fn read_options(&mut self, mut options: Source, model: Option<&str>) {
        if let Some(address) = options.take_text("upstream_url") {
            self.read_address(address);
        }
        if self.id == "azure-openai" {
            self.read_azure(&mut options, model);
        }
        if let Some(mut bedrock) = options.take_section("bedrock") {
            self.configure(&mut bedrock, "aws_region", "aws_region", false);
            self.import.unmapped_rest(bedrock, |_| "set it at the integration's configurations".to_owned());
        }
        self.import.unmapped_rest(options, |field| {
            match field {
                "input_cost" | "output_cost" => "set the price at the integration's model (pricing_config)",
                _ => "no field of an account or a target",
            }
            .to_owned()
        });
    }

    /// There it is the address of one operation, here of all of them.
    fn read_address(&mut self, mut address: Located<String>) {
        const PLACE: &str = "configurations.custom_host of the integration";
        let location = address.location.clone();
        match before_operation(&address.value).map(str::to_owned) {
            Some(base) => {
                // The gateway's own paths of this provider begin with the version.
                let base = if self.id == "ollama" { base.trim_end_matches("/v1") } else { &base };
                address.value = base.to_owned();
                self.import.mapped(location, PLACE);
            }
            None => {
                let why = "`custom_host` of the integration is the address before the path of an operation, as \
                           https://llm.example.com/v1: look whether this one is";
                self.import.unmapped(location, why);
            }
        }
        let own_name = self.own_name("address");
        let host = self.import.address(&address, "", &own_name);
        self.set("custom_host", host);
    }

    fn read_azure(&mut self, options: &mut Source, model: Option<&str>) {
        self.configure(options, "azure_instance", "azure_resource_name", false);
        let version = options.take_text("azure_api_version");
        let deployment = options.take_text("azure_deployment_id");
        let text = |found: &Option<Located<String>>| found.as_ref().map(|found| self.import.text(&found.value));
        let api_version = text(&version).unwrap_or_else(|| AZURE_API_VERSION.to_owned());
        if let Some(named) = text(&deployment).or_else(|| model.map(escaped)) {
            let deployment = json!({
                "azure_deployment_name": named,
                "azure_api_version": api_version,
                "azure_model_slug": model.map_or_else(|| named.clone(), escaped),
                "is_default": true,
            });
            self.set("azure_deployment_config", json!([deployment]));
        }
        for text in [version, deployment].into_iter().flatten() {
            self.import.mapped(text.location, "azure_deployment_config of the integration");
        }
    }

    /// Whether the gateway refuses such an account without a key.
    fn needs_key(&self) -> bool {
        match self.id {
            "azure-openai" => self.configurations.get("azure_auth_mode") == Some(&json!("default")),
            "bedrock" | "ollama" => false,
            _ => true,
        }
    }

    pub fn write(mut self) {
        if self.key.is_none() && self.needs_key() {
            let own_name = self.own_name("key");
            let what = "the key, or to any text where none is asked for,";
            self.key = Some(self.import.wanted(&self.location, self.slug, &own_name, what));
        }
        let mut integration = Map::new();
        integration.insert("name".to_owned(), self.slug.into());
        integration.insert("ai_provider_id".to_owned(), self.id.into());
        integration.extend(self.key.map(|key| ("key".to_owned(), key.into())));
        if !self.configurations.is_empty() {
            integration.insert("configurations".to_owned(), self.configurations.into());
        }
        self.import.add("integration", self.slug, integration);
    }
}
