//! Accounts at providers: LiteLLM repeats credentials at each model, here an integration has them once.

use super::vendors::{Access, Vendor};
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::Source;
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

/// How LiteLLM names a variable of the environment.
const ENVIRONMENT: &str = "os.environ/";

/// What makes two models share an integration.
#[derive(Debug, PartialEq)]
struct Account {
    vendor: &'static str,
    key: Option<String>,
    configurations: Map<String, Value>,
    slug: String,
    /// Azure's deployments, which the integration lists.
    deployments: Vec<Value>,
    providers: Vec<Provider>,
}

/// A handle on an account with limits of its own.
#[derive(Debug, PartialEq)]
struct Provider {
    slug: String,
    limits: Map<String, Value>,
}

#[derive(Debug, Default)]
pub struct Accounts {
    accounts: Vec<Account>,
}

impl Accounts {
    /// The slug of the provider that serves a model, and what the model is called there. Nothing where the account
    /// cannot be read, which is told.
    pub fn provider(
        &mut self,
        import: &mut Import,
        vendor: &'static Vendor,
        model: &str,
        params: &mut Source,
        base_model: Option<String>,
    ) -> Option<(String, String)> {
        let mut reading = Reading { import, vendor, params, configurations: Map::new() };
        let key = reading.key();
        let mut model = model.to_owned();
        let mut deployment = None;
        match vendor.access {
            Access::Azure => {
                let slug = base_model
                    .map_or_else(|| model.clone(), |base| base.rsplit('/').next().unwrap_or(&base).to_owned());
                deployment = Some(reading.azure(&model, &slug)?);
                model = slug;
            }
            Access::Aws => model = reading.aws(&model),
            Access::Vertex => reading.vertex(),
            Access::Address => reading.address()?,
            Access::Key(_) | Access::Open => reading.optional_address(),
        }
        reading.headers();
        let limits = reading.limits();
        let configurations = reading.configurations;
        let known = self.accounts.iter().position(|account| {
            account.vendor == vendor.id && account.key == key && account.configurations == configurations
        });
        let at = known.unwrap_or_else(|| {
            let slug = import.free_slug("integration", vendor.id);
            let (deployments, providers) = (Vec::new(), Vec::new());
            self.accounts.push(Account { vendor: vendor.id, key, configurations, slug, deployments, providers });
            self.accounts.len() - 1
        });
        let account = &mut self.accounts[at];
        if let Some(deployment) = deployment.filter(|deployment| !account.deployments.contains(deployment)) {
            account.deployments.push(deployment);
        }
        let known = account.providers.iter().find(|provider| provider.limits == limits);
        let slug = known.map(|provider| provider.slug.clone()).unwrap_or_else(|| {
            let slug = import.free_slug("provider", &account.slug);
            account.providers.push(Provider { slug: slug.clone(), limits });
            slug
        });
        Some((slug, model))
    }

    pub fn write(self, import: &mut Import) {
        for mut account in self.accounts {
            if let Some(first) = account.deployments.first_mut() {
                first["is_default"] = true.into();
                account.configurations.insert("azure_deployment_config".to_owned(), account.deployments.into());
            }
            let mut spec = Map::new();
            spec.insert("name".to_owned(), account.slug.clone().into());
            spec.insert("ai_provider_id".to_owned(), account.vendor.into());
            if let Some(key) = account.key {
                spec.insert("key".to_owned(), key.into());
            }
            if !account.configurations.is_empty() {
                spec.insert("configurations".to_owned(), account.configurations.into());
            }
            import.add("integration", &account.slug, spec);
            for provider in account.providers {
                let mut spec = Map::new();
                spec.insert("name".to_owned(), provider.slug.clone().into());
                spec.insert("integration_id".to_owned(), format!("${{integration:{}}}", account.slug).into());
                spec.extend(provider.limits);
                import.add("provider", &provider.slug, spec);
            }
        }
    }
}

/// The account of one model while it is read.
struct Reading<'a> {
    import: &'a mut Import,
    vendor: &'static Vendor,
    params: &'a mut Source,
    configurations: Map<String, Value>,
}

impl Reading<'_> {
    fn key(&mut self) -> Option<String> {
        let own_name = format!("{}_API_KEY", slug::variable(self.vendor.id));
        match (self.params.take_text("api_key"), self.vendor.access) {
            (Some(key), _) => {
                let variable = self.import.credential(&key.location, &key.value, ENVIRONMENT, &own_name);
                self.import.mapped(key.location, "key of the integration");
                Some(variable)
            }
            // It is read from there without a word.
            (None, Access::Key(name)) => Some(format!("${{env:{name}}}")),
            (None, Access::Azure) => Some("${env:AZURE_API_KEY}".to_owned()),
            (None, Access::Address) => Some(format!("${{env:{own_name}}}")),
            (None, Access::Open | Access::Aws | Access::Vertex) => None,
        }
    }

    /// A text of the account: a variable, or what stands there.
    fn configure(&mut self, name: &str, ours: &str) -> bool {
        let Some(text) = self.params.take_text(name) else { return false };
        let value = match text.value.strip_prefix(ENVIRONMENT) {
            Some(variable) => format!("${{env:{variable}}}"),
            None => escaped(&text.value),
        };
        self.configurations.insert(ours.to_owned(), value.into());
        self.import.mapped(text.location, format!("configurations.{ours} of the integration"));
        true
    }

    fn configure_secret(&mut self, name: &str, ours: &str) -> bool {
        let Some(text) = self.params.take_text(name) else { return false };
        let variable = self.import.credential(&text.location, &text.value, ENVIRONMENT, &slug::variable(name));
        self.configurations.insert(ours.to_owned(), variable.into());
        self.import.mapped(text.location, format!("configurations.{ours} of the integration"));
        true
    }

    fn azure(&mut self, deployment: &str, model: &str) -> Option<Value> {
        let Some(base) = self.params.take_text("api_base") else {
            self.import.unmapped(self.params.location.clone(), "Azure needs `api_base`, which is missing");
            return None;
        };
        if let Some(resource) = resource_of(&base.value) {
            self.configurations.insert("azure_resource_name".to_owned(), resource.into());
            self.import.mapped(base.location, "configurations.azure_resource_name of the integration");
        } else if let Some(variable) = base.value.strip_prefix(ENVIRONMENT) {
            let name = format!("{variable}_RESOURCE");
            let why = format!("set {name} to the resource's name, the first word of the address in {variable}");
            self.configurations.insert("azure_resource_name".to_owned(), format!("${{env:{name}}}").into());
            self.import.unmapped(base.location, why);
        } else {
            self.import
                .unmapped(base.location, "no address of an Azure OpenAI resource: store it as a provider by hand");
            return None;
        }
        let is_entra =
            ["tenant_id", "client_id"].map(|name| self.configure(name, &format!("azure_entra_{name}"))).contains(&true)
                | self.configure_secret("client_secret", "azure_entra_client_secret");
        self.configurations.insert("azure_auth_mode".to_owned(), if is_entra { "entra" } else { "default" }.into());
        let mut version = json!("2024-10-21");
        if let Some(given) = self.params.take_text("api_version") {
            version = match given.value.strip_prefix(ENVIRONMENT) {
                Some(variable) => format!("${{env:{variable}}}"),
                None => escaped(&given.value),
            }
            .into();
            self.import.mapped(given.location, "azure_api_version of the integration's deployment");
        }
        Some(json!({
            "azure_deployment_name": escaped(deployment),
            "azure_api_version": version,
            "azure_model_slug": escaped(model),
        }))
    }

    /// Returns the model without the words that LiteLLM puts before it.
    fn aws(&mut self, model: &str) -> String {
        if !self.configure("aws_region_name", "aws_region") {
            self.configurations.insert("aws_region".to_owned(), "${env:AWS_REGION}".into());
        }
        let has_keys = self.configure_secret("aws_access_key_id", "aws_access_key_id")
            & self.configure_secret("aws_secret_access_key", "aws_secret_access_key");
        let has_role = self.configure("aws_role_name", "aws_role_arn");
        let auth = if has_role {
            "assumedRole"
        } else if has_keys {
            "accessKey"
        } else {
            "serviceRole"
        };
        self.configurations.insert("aws_auth_type".to_owned(), auth.into());
        let words = ["converse/", "invoke/", "converse_like/"];
        words.iter().find_map(|word| model.strip_prefix(word)).unwrap_or(model).to_owned()
    }

    fn vertex(&mut self) {
        self.configure("vertex_project", "vertex_project_id");
        if !self.configure("vertex_location", "vertex_region") {
            self.configurations.insert("vertex_region".to_owned(), "us-central1".into());
        }
        let mut auth = "workloadIdentity";
        if let Some(credentials) = self.params.take_text("vertex_credentials") {
            auth = "serviceAccount";
            // A path, or the document itself, which must not be repeated.
            let text = &credentials.value;
            let value = match (text.strip_prefix(ENVIRONMENT), text.contains('{')) {
                (Some(variable), _) => format!("${{env:{variable}}}"),
                (None, false) => format!("${{file:{}}}", escaped(text)),
                (None, true) => "${env:VERTEX_CREDENTIALS}".to_owned(),
            };
            self.configurations.insert("vertex_service_account_json".to_owned(), value.into());
            let why =
                "the service account is read by `portcullis apply`: it must be the JSON document, not a path to it";
            self.import.unmapped(credentials.location, why);
        }
        self.configurations.insert("vertex_auth_type".to_owned(), auth.into());
    }

    fn address(&mut self) -> Option<()> {
        if self.configure("api_base", "custom_host") || self.configure("base_url", "custom_host") {
            return Some(());
        }
        let why = format!("`{}` needs `api_base`, which is missing", self.vendor.prefix);
        self.import.unmapped(self.params.location.clone(), why);
        None
    }

    fn optional_address(&mut self) {
        let _ = self.configure("api_base", "custom_host") || self.configure("base_url", "custom_host");
        if self.vendor.id == "openai" {
            self.configure("organization", "openai_organization");
        }
    }

    fn headers(&mut self) {
        let Some(headers) = self.params.take_section("extra_headers") else { return };
        let mut sent = Map::new();
        for (name, header) in headers.into_fields() {
            match header.value().as_str() {
                Some(text) => {
                    // Whether a header holds a credential cannot be seen.
                    let own_name = slug::variable(&format!("{} {name}", self.vendor.id));
                    sent.insert(name, self.import.credential(&header.location, text, ENVIRONMENT, &own_name).into());
                    self.import.mapped(header.location, "configurations.custom_headers of the integration");
                }
                None => self.import.unmapped(header.location, "no text"),
            }
        }
        if !sent.is_empty() {
            self.configurations.insert("custom_headers".to_owned(), sent.into());
        }
    }

    fn limits(&mut self) -> Map<String, Value> {
        let mut limits = Map::new();
        let mut rates = Vec::new();
        for (name, kind) in [("rpm", "requests"), ("tpm", "tokens")] {
            if let Some(rate) = self.params.take_positive_count(name) {
                rates.push(json!({ "type": kind, "unit": "rpm", "value": rate.value }));
                self.import.mapped(rate.location, "rate_limits of the provider");
            }
        }
        if !rates.is_empty() {
            limits.insert("rate_limits".to_owned(), rates.into());
        }
        limits
    }
}

/// `my-resource` of `https://my-resource.openai.azure.com/`.
fn resource_of(base: &str) -> Option<&str> {
    let host = base.strip_prefix("https://")?.split('/').next()?;
    host.strip_suffix(".openai.azure.com").filter(|resource| !resource.is_empty() && !resource.contains('.'))
}
