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
    # The tool that runs commands, and its arguments for one.
    shell: str
    shell_arguments: object
    # Tools that write a file, with their arguments; which it offers may depend on the model.
    writers: dict
    run: object

    @property
    def version(self):
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


AGENTS = {
    "claude": Agent(
        "Claude Code", "@anthropic-ai/claude-code",
        "Bash", lambda command: {"command": command, "description": "As asked"},
        {"Write": lambda path, text: {"file_path": path, "content": text}},
        claude,
    ),
    "codex": Agent(
        "Codex", "@openai/codex",
        "exec_command", lambda command: {"cmd": command},
        {"exec_command": lambda path, text: {"cmd": f"printf %s {text} > {path}"}},
        codex,
    ),
    "gemini": Agent(
        "Gemini CLI", "@google/gemini-cli",
        "run_shell_command", lambda command: {"command": command, "description": "As asked"},
        {"write_file": lambda path, text: {"file_path": path, "content": text}},
        gemini,
    ),
    "qwen": Agent(
        "Qwen Code", "@qwen-code/qwen-code",
        "run_shell_command", lambda command: {"command": command, "description": "As asked", "is_background": False},
        {"write_file": lambda path, text: {"file_path": path, "content": text}},
        qwen,
    ),
    "opencode": Agent(
        "OpenCode", "opencode-ai",
        "bash", lambda command: {"command": command, "description": "As asked"},
        {
            "write": lambda path, text: {"filePath": path, "content": text},
            "apply_patch": lambda path, text: {"patchText": patch(path, text)},
        },
        opencode,
    ),
}
