"""How each agent is pointed at a gateway and run without a terminal, and what its tools are called."""

import json
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = HERE / "node_modules"


@dataclass
class Run:
    """One run: the program, its environment beyond the common one, and files in its home."""

    command: list
    environment: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)


@dataclass
class Agent:
    name: str
    version_of: str
    run: object
    # The tool that runs commands, and its arguments for one; none where the agent has no tools.
    shell: str | None = None
    shell_arguments: object = None
    # Tools that write a file, with their arguments; which it offers may depend on the model.
    writers: dict = field(default_factory=dict)
    # What its calls' metadata `_agent` is, and whether it tells its sessions.
    metadata_name: str | None = None
    has_sessions: bool = False
    # The text that makes an agent without tools write a file.
    edit: object = None

    @property
    def version(self):
        name, _, pinned = (HERE / "requirements.txt").read_text().strip().partition("==")
        if name == self.version_of:
            return pinned
        return json.loads((PACKAGES / self.version_of / "package.json").read_text())["version"]


def patch(path, text):
    return f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch"


def claude(base, key, model, prompt):
    return Run(
        [PACKAGES / "@anthropic-ai/claude-code-linux-x64/claude", "-p", prompt, "--model", model,
         "--dangerously-skip-permissions"],
        {
            "ANTHROPIC_BASE_URL": base.removesuffix("/v1"), "ANTHROPIC_AUTH_TOKEN": key,
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": model, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
        },
    )


def codex(base, key, model, prompt):
    config = f"""
model_provider = "gateway"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.gateway]
name = "gateway"
base_url = "{base}"
env_key = "GATEWAY_KEY"
wire_api = "responses"
"""
    return Run(
        [PACKAGES / "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "exec", "--skip-git-repo-check",
         "--dangerously-bypass-approvals-and-sandbox", "-m", model, prompt],
        {"GATEWAY_KEY": key},
        {".codex/config.toml": config},
    )


def gemini(base, key, model, prompt):
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False}, "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    }
    return Run(
        ["node", PACKAGES / "@google/gemini-cli/bundle/gemini.js", "-m", model, "--yolo", "-p", prompt],
        {"GOOGLE_GEMINI_BASE_URL": base.removesuffix("/v1"), "GEMINI_API_KEY": key, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {".gemini/settings.json": json.dumps(settings)},
    )


def qwen(base, key, model, prompt):
    settings = {"privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
    return Run(
        ["node", PACKAGES / "@qwen-code/qwen-code/cli.js", "--auth-type", "openai", "--openai-base-url", base,
         "--openai-api-key", key, "-m", model, "--yolo", "-p", prompt],
        {},
        {".qwen/settings.json": json.dumps(settings)},
    )


def opencode(base, key, model, prompt):
    models = {model: {"name": model, "limit": {"context": 128_000, "output": 8_192}}}
    config = {
        "autoupdate": False, "share": "disabled",
        "provider": {"gateway": {
            "npm": "@ai-sdk/openai-compatible", "name": "gateway", "options": {"baseURL": base, "apiKey": key},
            "models": models,
        }},
    }
    return Run(
        [PACKAGES / "opencode-linux-x64/bin/opencode", "run", "-m", f"gateway/{model}", prompt],
        {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
        {".config/opencode/opencode.json": json.dumps(config)},
    )


def aider(base, key, model, prompt):
    return Run(
        [HERE / ".venv/bin/aider", "--model", f"openai/{model}", "--openai-api-base", base, "--openai-api-key", key,
         "--edit-format", "whole", "--no-git", "--yes-always", "--no-check-update", "--analytics-disable",
         "--no-show-model-warnings", "--no-show-release-notes", "--no-auto-lint", "--message", prompt],
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )


AGENTS = {
    "claude": Agent(
        "Claude Code", "@anthropic-ai/claude-code", claude,
        "Bash", lambda command: {"command": command, "description": "As asked"},
        {"Write": lambda path, text: {"file_path": path, "content": text}},
        metadata_name="claude-code", has_sessions=True,
    ),
    "codex": Agent(
        "Codex", "@openai/codex", codex,
        "exec_command", lambda command: {"cmd": command},
        {"exec_command": lambda path, text: {"cmd": f"printf %s {text} > {path}"}},
        metadata_name="codex", has_sessions=True,
    ),
    "gemini": Agent(
        "Gemini CLI", "@google/gemini-cli", gemini,
        "run_shell_command", lambda command: {"command": command, "description": "As asked"},
        {"write_file": lambda path, text: {"file_path": path, "content": text}},
        metadata_name="gemini-cli",
    ),
    "qwen": Agent(
        "Qwen Code", "@qwen-code/qwen-code", qwen,
        "run_shell_command", lambda command: {"command": command, "description": "As asked", "is_background": False},
        {"write_file": lambda path, text: {"file_path": path, "content": text}},
        metadata_name="qwen-code",
    ),
    "opencode": Agent(
        "OpenCode", "opencode-ai", opencode,
        "bash", lambda command: {"command": command, "description": "As asked"},
        {
            "write": lambda path, text: {"filePath": path, "content": text},
            "apply_patch": lambda path, text: {"patchText": patch(path, text)},
        },
        metadata_name="opencode", has_sessions=True,
    ),
    "aider": Agent(
        "Aider", "aider-chat", aider, edit=lambda path, text: f"Here it is.\n\n{path.name}\n```\n{text}\n```\n",
    ),
}
