# An organisation with one of everything that the provider has a resource for, as its examples write it.
terraform {
  required_providers {
    portkey = { source = "portkey-ai/portkey" }
  }
}
# What is changed by the second run.
variable "rate" {
  type    = number
  default = 100
}
variable "words" {
  type    = number
  default = 1000
}
provider "portkey" {}

resource "portkey_workspace" "team" {
  name         = "Team"
  icon         = "🚀"
  description  = "made by terraform"
  usage_limits = [{ type = "cost", credit_limit = 1000, alert_threshold = 800, periodic_reset = "monthly" }]
  rate_limits  = [{ type = "requests", unit = "rpm", value = var.rate }]
}
resource "portkey_integration" "openai" {
  name           = "OpenAI"
  ai_provider_id = "openai"
  key            = "sk-0123456789"
}
resource "portkey_integration" "vertex" {
  name           = "Vertex"
  ai_provider_id = "vertex-ai"
  key            = "ya29"
  configurations = jsonencode({ vertex_auth_type = "basic", vertex_region = "us-central1", vertex_project_id = "p" })
}
resource "portkey_integration" "own" {
  name           = "OpenAI of the team"
  ai_provider_id = "openai"
  key            = "sk-0123456789"
  workspace_id   = portkey_workspace.team.id
}
resource "portkey_integration_model_access" "priced" {
  integration_id = portkey_integration.openai.slug
  model_slug     = "gpt-4o"
  enabled        = true
  pricing_config = { type = "static", pay_as_you_go = { request_token_price = 0.03, response_token_price = 0.06 } }
}
resource "portkey_integration_model_access" "custom" {
  integration_id  = portkey_integration.openai.slug
  model_slug      = "ft:gpt-4o:my-org:custom-model"
  enabled         = true
  is_custom       = true
  is_finetune     = true
  base_model_slug = "gpt-4o"
}
resource "portkey_integration_workspace_access" "team" {
  integration_id = portkey_integration.openai.slug
  workspace_id   = portkey_workspace.team.id
  enabled        = true
  usage_limits   = [{ type = "cost", credit_limit = 100, alert_threshold = 80, periodic_reset = "monthly" }]
  rate_limits    = [{ type = "requests", unit = "rpm", value = 1000 }]
}
resource "portkey_provider" "team" {
  name           = "prod"
  workspace_id   = portkey_workspace.team.id
  integration_id = portkey_integration.openai.slug
  note           = "a note"
  depends_on     = [portkey_integration_workspace_access.team]
}
resource "portkey_config" "routing" {
  name         = "routing"
  workspace_id = portkey_workspace.team.id
  config       = jsonencode({ retry = { attempts = 3 } })
}
resource "portkey_api_key" "service" {
  name                  = "service"
  type                  = "workspace"
  sub_type              = "service"
  workspace_id          = portkey_workspace.team.id
  scopes                = ["completions.write", "providers.read", "providers.list"]
  config_id             = portkey_config.routing.id
  allow_config_override = false
  usage_limits          = { credit_limit = 500, alert_threshold = 400, periodic_reset = "monthly" }
  rate_limits           = [{ type = "requests", unit = "rpm", value = var.rate }]
}
resource "portkey_guardrail" "words" {
  name         = "words"
  workspace_id = portkey_workspace.team.id
  checks       = jsonencode([{ id = "default.wordCount", parameters = { minWords = 1, maxWords = var.words } }])
  actions      = jsonencode({ onFail = "log", message = "Word count check failed" })
}
resource "portkey_prompt_collection" "main" {
  name         = "Main"
  workspace_id = portkey_workspace.team.id
}
resource "portkey_prompt_collection" "nested" {
  name                 = "Nested"
  workspace_id         = portkey_workspace.team.id
  parent_collection_id = portkey_prompt_collection.main.id
}
resource "portkey_prompt_partial" "kind" {
  name                = "kind"
  content             = "You are kind."
  workspace_id        = portkey_workspace.team.id
  version_description = "Initial version"
}
resource "portkey_prompt" "greet" {
  name          = "greet"
  collection_id = portkey_prompt_collection.main.id
  virtual_key   = portkey_provider.team.slug
  template      = jsonencode([{ role = "user", content = "Hi {{name}} ${var.words}" }])
  model         = "gpt-4o"
  parameters    = "{}"
}
resource "portkey_rate_limits_policy" "rate" {
  name         = "rate"
  workspace_id = portkey_workspace.team.id
  conditions   = jsonencode([{ key = "workspace_id", value = portkey_workspace.team.id }])
  group_by     = jsonencode([{ key = "api_key" }])
  type         = "requests"
  unit         = "rpm"
  value        = var.rate
}
resource "portkey_usage_limits_policy" "usage" {
  name            = "usage"
  workspace_id    = portkey_workspace.team.id
  conditions      = jsonencode([{ key = "workspace_id", value = portkey_workspace.team.id }])
  group_by        = jsonencode([{ key = "api_key" }])
  type            = "cost"
  credit_limit    = var.rate
  alert_threshold = var.rate * 0.8
  periodic_reset  = "monthly"
}
resource "portkey_secret_reference" "aws" {
  name                = "aws"
  manager_type        = "aws_sm"
  secret_path         = "prod/openai"
  aws_access_key_auth = { aws_access_key_id = "AKIA0123456789", aws_secret_access_key = "secret", aws_region = "us-east-1" }
  # Said, because the provider's own default for it makes an update of each plan otherwise.
  allow_all_workspaces = false
  allowed_workspaces   = [portkey_workspace.team.id]
  tags                 = { env = "prod" }
}
resource "portkey_mcp_integration" "tools" {
  name        = "tools"
  description = "d"
  url         = "https://mcp.example.com/mcp"
  auth_type   = "none"
  transport   = "http"
}
resource "portkey_mcp_integration_workspace_access" "team" {
  mcp_integration_id = portkey_mcp_integration.tools.id
  workspace_id       = portkey_workspace.team.id
}
resource "portkey_mcp_integration_capabilities" "tools" {
  mcp_integration_id = portkey_mcp_integration.tools.id
  capabilities       = [{ name = "delete_repository", type = "tool", enabled = false }]
}
resource "portkey_user_invite" "ada" {
  email      = "ada@example.com"
  role       = "member"
  workspaces = [{ id = portkey_workspace.team.id, role = "admin" }]
  scopes     = ["logs.list", "logs.view"]
}
data "portkey_users" "all" {}
data "portkey_workspaces" "all" { depends_on = [portkey_workspace.team] }
data "portkey_integrations" "all" { depends_on = [portkey_integration.openai] }
data "portkey_api_key" "one" { id = portkey_api_key.service.id }
data "portkey_config" "one" { slug = portkey_config.routing.slug }
data "portkey_secret_references" "all" { depends_on = [portkey_secret_reference.aws] }
