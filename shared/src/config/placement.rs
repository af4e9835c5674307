//! Fields that belong to one provider: credentials, regions, deployments. They are kept by name and handed to the
//! provider's adapter; here only their form is known. Values may be secret, so none is ever printed.

use super::credentials::{self, SealedText};
use super::fault::{Code, Path, Reading};
use super::object::{self, ConfigObject};
use crate::nearest::nearest;
use crate::providers::AccountFields;
use crate::secrets::seal::{SealError, Sealed, SealedPlace, Secret};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use uuid::Uuid;

#[derive(Clone, Default, PartialEq)]
pub struct Placement {
    fields: Vec<(String, Value)>,
    /// Where sealed values belong; none when there are none.
    sealed_in: Option<SealedPlace>,
    /// Whether a credential here was saved with the config rather than sent with a request.
    has_saved_credential: bool,
}

impl Placement {
    /// Nothing of what is still sealed.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.fields.iter().find(|(other, _)| other == name)?;
        let is_sealed = self.sealed_in.is_some() && SealedText::from_value(value).is_some();
        (!is_sealed).then_some(value)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.names().any(|other| other == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// Says whose row the fields were read from: from now on sealed values are secrets, not texts.
    pub(super) fn seal_in(&mut self, organisation: Uuid, config: Uuid) {
        let has_sealed = self.fields.iter().any(|(_, value)| SealedText::from_value(value).is_some());
        self.sealed_in = has_sealed.then(|| credentials::place(organisation, config));
        self.has_saved_credential = has_sealed || self.names().any(credentials::is_secret);
    }

    /// Whether a saved config keeps a credential here. It is meant for the provider and the address that the config
    /// itself names, and for no other, whatever a request says.
    pub fn has_saved_credential(&self) -> bool {
        self.has_saved_credential
    }

    /// With its sealed values in plain text, for the head of one request.
    pub fn opened(
        &self,
        open: impl Fn(&SealedPlace, &Sealed) -> Result<Secret, SealError>,
    ) -> Result<Cow<'_, Self>, SealError> {
        let Some(place) = &self.sealed_in else { return Ok(Cow::Borrowed(self)) };
        let mut fields = self.fields.clone();
        for (_, value) in &mut fields {
            if let Some(text) = SealedText::from_value(value) {
                let secret = open(place, &text.sealed)?;
                *value = secret.expose_text().ok_or(SealError::Malformed)?.into();
            }
        }
        Ok(Cow::Owned(Self { fields, sealed_in: None, has_saved_credential: self.has_saved_credential }))
    }
}

impl AccountFields for Placement {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.get(name).and_then(Value::as_object)
    }
}

/// Names only.
impl fmt::Debug for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Takes what is left of a node after everything of our own was taken.
pub fn parse(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>) -> Placement {
    let mut placement = Placement::default();
    for (name, value) in node.rest() {
        let path = node.path.key(&name);
        match form(&name) {
            Some(form) if form.holds(reading, &path, value) => {
                placement.fields.push((name.into_owned(), value.clone()))
            }
            Some(_) => {}
            None if let Some((_, why)) = MEANINGLESS.iter().find(|(other, _)| *other == name) => {
                reading.tolerate(&path, Code::Useless, *why);
            }
            None => {
                let known = super::FIELDS.iter().copied().chain(field_names());
                let meant = reading.may_guess().then(|| nearest(&name, known)).flatten();
                object::unknown(reading, &path, meant);
            }
        }
    }
    placement
}

/// Refuses fields of an account at a target that names a stored one, which has them itself: nobody would read them.
pub fn check_stored(reading: &mut Reading<'_>, path: &Path<'_>, placement: &Placement) {
    for name in placement.names().filter(|name| is_of_account(name)) {
        let message = "belongs to the stored account that the target names: set it there, or name the provider itself";
        reading.tolerate(&path.key(name), Code::Exclusive, message);
    }
}

fn is_of_account(name: &str) -> bool {
    name == "api_key" || PLACING.contains(&name)
}

/// The name of every such field.
pub fn field_names() -> impl Iterator<Item = &'static str> {
    SPECIAL.iter().map(|(name, _)| *name).chain(TEXTS.iter().copied())
}

/// The words that such a field takes, where they are a closed set.
pub fn field_words(name: &str) -> Option<&'static [&'static str]> {
    match form(name)? {
        Form::OneOf(words) => Some(words),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Form {
    Text,
    OneOf(&'static [&'static str]),
    /// `true`, or the text of a header that says so.
    Flag,
    /// An object, or its JSON as text.
    Document,
    Deployments,
}

fn form(name: &str) -> Option<Form> {
    let special = SPECIAL.iter().find(|(other, _)| *other == name).map(|(_, form)| *form);
    special.or(TEXTS.contains(&name).then_some(Form::Text))
}

static SPECIAL: &[(&str, Form)] = &[
    ("azure_deployment_type", Form::OneOf(&["serverless", "managed"])),
    ("azure_auth_mode", Form::OneOf(&["default", "entra", "managed", "workload", "entraFederated"])),
    ("aws_auth_type", Form::OneOf(&["accessKey", "assumedRole", "apiKey", "serviceRole"])),
    ("mistral_fim_completion", Form::Flag),
    ("provider_responses_proxy", Form::Flag),
    ("vertex_service_account_json", Form::Document),
    ("deployments", Form::Deployments),
];

impl Form {
    fn holds(self, reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> bool {
        match self {
            Self::Text => object::text(reading, path, value).is_some(),
            Self::OneOf(words) => {
                let choices: Vec<(&str, ())> = words.iter().map(|word| (*word, ())).collect();
                object::choice(reading, path, value, &choices).is_some()
            }
            Self::Flag if value.is_boolean() => true,
            Self::Flag => object::choice(reading, path, value, &[("true", ()), ("false", ())]).is_some(),
            Self::Document => is_document(reading, path, value),
            Self::Deployments => are_deployments(reading, path, value),
        }
    }
}

fn is_document(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> bool {
    let holds = match value {
        Value::Object(_) => true,
        Value::String(text) => {
            SealedText::parse(text).is_some()
                || serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
        }
        _ => false,
    };
    if !holds {
        reading.fault(path, Code::WrongType, "must be an object or its JSON");
    }
    holds
}

fn are_deployments(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> bool {
    let Some(items) = object::array(reading, path, value) else { return false };
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        let Some(mut deployment) = ConfigObject::parse(reading, &path, item) else { continue };
        if !deployment.has("deployment_id") {
            reading.fault(&path.key("deployment_id"), Code::Missing, "is required");
        }
        for name in ["deployment_id", "alias", "api_version"] {
            deployment.text(reading, name);
        }
        deployment.flag(reading, "is_default");
        deployment.finish(reading);
    }
    true
}

/// Fields that clients of other gateways send and that could have no effect here.
static MEANINGLESS: &[(&str, &str)] = &[
    ("file_purpose", "has no effect: the form of an upload says what the file is for, as its `purpose`"),
    ("file_upload_size", "has no effect: the gateway measures files itself"),
    (
        "provider_batch_endpoint",
        "has no effect: the batch says it as its `endpoint`, and each of its rows as its `url`",
    ),
];

/// Fields that say where an account is and with what it authenticates.
pub static PLACING: &[&str] = &[
    "api_version",
    "aws_access_key_id",
    "aws_auth_type",
    "aws_external_id",
    "aws_region",
    "aws_role_arn",
    "aws_s3_bucket",
    "aws_secret_access_key",
    "aws_session_token",
    "azure_ad_token",
    "azure_api_version",
    "azure_auth_mode",
    "azure_deployment_id",
    "azure_deployment_name",
    "azure_deployment_type",
    "azure_entra_client_id",
    "azure_entra_client_secret",
    "azure_entra_scope",
    "azure_entra_tenant_id",
    "azure_foundry_url",
    "azure_managed_client_id",
    "azure_model_name",
    "azure_region",
    "azure_resource_name",
    "azure_workload_client_id",
    "azure_workload_tenant_id",
    "byteplus_region",
    "databricks_serving_endpoint_name",
    "databricks_workspace",
    "deployment_id",
    "deployments",
    "fireworks_account_id",
    "huggingface_base_url",
    "oracle_api_version",
    "oracle_compartment_id",
    "oracle_fingerprint",
    "oracle_key_passphrase",
    "oracle_private_key",
    "oracle_region",
    "oracle_serving_mode",
    "oracle_tenancy",
    "oracle_user",
    "resource_name",
    "snowflake_account",
    "snowflake_private_key",
    "snowflake_private_key_passphrase",
    "snowflake_user",
    "vertex_auth_type",
    "vertex_project_id",
    "vertex_region",
    "vertex_service_account_json",
    "vertex_storage_bucket_name",
    "workers_ai_account_id",
];

/// Fields that choose among the ways in which a provider can be asked; also of a stored one.
pub static WAYS: &[&str] = &["mistral_fim_completion", "provider_responses_proxy"];

static TEXTS: &[&str] = &[
    "api_key",
    "anthropic_beta",
    "anthropic_version",
    "openai_organization",
    "openai_project",
    "openai_beta",
    "resource_name",
    "deployment_id",
    "api_version",
    "azure_resource_name",
    "azure_deployment_id",
    "azure_api_version",
    "azure_model_name",
    "azure_ad_token",
    "azure_managed_client_id",
    "azure_workload_client_id",
    "azure_workload_tenant_id",
    "azure_entra_client_id",
    "azure_entra_client_secret",
    "azure_entra_tenant_id",
    "azure_entra_scope",
    "azure_foundry_url",
    "azure_endpoint_name",
    "azure_region",
    "azure_deployment_name",
    "azure_extra_params",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_region",
    "aws_role_arn",
    "aws_external_id",
    "aws_s3_bucket",
    "aws_s3_object_key",
    "aws_bedrock_model",
    "amz_server_side_encryption",
    "amz_server_side_encryption_aws_kms_key_id",
    "amzn_sagemaker_custom_attributes",
    "amzn_sagemaker_target_model",
    "amzn_sagemaker_target_variant",
    "amzn_sagemaker_target_container_hostname",
    "amzn_sagemaker_inference_id",
    "amzn_sagemaker_enable_explanations",
    "amzn_sagemaker_inference_component",
    "amzn_sagemaker_session_id",
    "amzn_sagemaker_model_name",
    "anthropic_aws_workspace_id",
    "vertex_project_id",
    "vertex_region",
    "vertex_auth_type",
    "vertex_storage_bucket_name",
    "provider_file_name",
    "provider_model",
    "workers_ai_account_id",
    "huggingface_base_url",
    "stability_client_id",
    "stability_client_user_id",
    "stability_client_version",
    "fireworks_account_id",
    "snowflake_account",
    "snowflake_user",
    "snowflake_private_key",
    "snowflake_private_key_passphrase",
    "oracle_api_version",
    "oracle_region",
    "oracle_compartment_id",
    "oracle_serving_mode",
    "oracle_tenancy",
    "oracle_user",
    "oracle_fingerprint",
    "oracle_private_key",
    "oracle_key_passphrase",
    "databricks_workspace",
    "databricks_serving_endpoint_name",
    "byteplus_region",
];
