//! Which files each agent reads, and what has to stand in them. `docs/agents.md` says the same for people.

use super::edits::Form;
use crate::outcome::Failure;

pub struct Agent {
    pub name: &'static str,
    pub files: &'static [File],
    /// What it asks for unless another model is named.
    pub model: &'static str,
    pub start: &'static str,
    /// What files cannot do.
    pub also: &'static str,
}

pub struct File {
    /// Below the home folder.
    pub path: &'static str,
    pub form: Form,
    /// `{url}`, `{key}` and `{model}` are filled.
    pub content: &'static str,
}

static AGENTS: &[Agent] = &[
    Agent {
        name: "claude-code",
        files: &[File {
            path: ".claude/settings.json",
            form: Form::Json,
            content: r#"{"env": {"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_AUTH_TOKEN": "{key}", "ANTHROPIC_MODEL": "{model}"}}"#,
        }],
        model: "claude-sonnet-4-5",
        start: "claude",
        also: "",
    },
    Agent {
        name: "codex",
        files: &[File {
            path: ".codex/config.toml",
            form: Form::Toml,
            content: "model = \"{model}\"\nmodel_provider = \"portcullis\"\n---\n[model_providers.portcullis]\nname = \"portcullis\"\nbase_url = \"{url}/v1\"\nenv_key = \"PORTCULLIS_API_KEY\"\nwire_api = \"responses\"\n",
        }],
        model: "gpt-5.4-mini",
        start: "codex -m {model}",
        also: "Codex reads the key from the environment: export PORTCULLIS_API_KEY=…",
    },
    Agent {
        name: "gemini-cli",
        files: &[
            File {
                path: ".gemini/.env",
                form: Form::Lines,
                content: "GOOGLE_GEMINI_BASE_URL={url}\nGEMINI_API_KEY={key}\nGEMINI_MODEL={model}\n",
            },
            File {
                path: ".gemini/settings.json",
                form: Form::Json,
                content: r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#,
            },
        ],
        model: "gemini-2.5-flash",
        start: "gemini -m {model}",
        also: "",
    },
    Agent {
        name: "opencode",
        files: &[File {
            path: ".config/opencode/opencode.json",
            form: Form::Json,
            content: r#"{"provider": {"portcullis": {"npm": "@ai-sdk/openai-compatible", "name": "portcullis", "options": {"baseURL": "{url}/v1", "apiKey": "{key}"}, "models": {"{model}": {"name": "{model}", "limit": {"context": 128000, "output": 8192}}}}}}"#,
        }],
        model: "gpt-5.4-mini",
        start: "opencode run -m portcullis/{model} \"What does this folder hold?\"",
        also: "",
    },
    Agent {
        name: "aider",
        files: &[File {
            path: ".aider.conf.yml",
            form: Form::Lines,
            content: "openai-api-base: {url}/v1\nopenai-api-key: {key}\nmodel: openai/{model}\n",
        }],
        model: "gpt-5.4-mini",
        start: "aider",
        also: "",
    },
    Agent {
        name: "qwen-code",
        files: &[
            File {
                path: ".qwen/.env",
                form: Form::Lines,
                content: "OPENAI_BASE_URL={url}/v1\nOPENAI_API_KEY={key}\nOPENAI_MODEL={model}\n",
            },
            File {
                path: ".qwen/settings.json",
                form: Form::Json,
                content: r#"{"security": {"auth": {"selectedType": "openai"}}}"#,
            },
        ],
        model: "gpt-5.4-mini",
        start: "qwen -m {model}",
        also: "",
    },
];

pub fn names() -> Vec<&'static str> {
    AGENTS.iter().map(|agent| agent.name).collect()
}

pub fn find(name: &str) -> Result<&'static Agent, Failure> {
    AGENTS
        .iter()
        .find(|agent| agent.name == name)
        .ok_or_else(|| Failure::new(format!("`{name}` is no agent known here")))
}

pub fn filled(file: &File, url: &str, key: &str, model: &str) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    file.content.replace("{url}", url).replace("{key}", &escaped(key)).replace("{model}", &escaped(model))
}
