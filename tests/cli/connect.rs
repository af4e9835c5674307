//! Agents are pointed at the gateway by the files that they read, and are left as they were.

use crate::program::{User, contents};
use harness::Stack;

#[tokio::test]
async fn each_agent_is_connected_once_and_taken_back() {
    let stack = Stack::start().await;
    let user = User::new(&stack.base_url, &stack.home.workspace_key);
    let organisation = User::administrator(&stack).run(&["connect", "codex"]).await;
    assert!(organisation.code == 1 && organisation.stderr.contains("a key of a workspace"), "{}", organisation.stderr);
    for (agent, file, mine) in [
        ("claude-code", ".claude/settings.json", "{\n  \"theme\": \"dark\"\n}\n"),
        ("codex", ".codex/config.toml", "sandbox = \"on\"\n[tools]\nweb = true\n"),
        ("gemini-cli", ".gemini/.env", "OTHER=1\n"),
        ("opencode", ".config/opencode/opencode.json", "{\n  \"share\": \"disabled\"\n}\n"),
        ("aider", ".aider.conf.yml", "# mine\ndark-mode: true\n"),
        ("qwen-code", ".qwen/.env", "OTHER=1\n"),
    ] {
        let path = user.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, mine).unwrap();
        let before = contents(user.home.path());
        let tried = user.run(&["connect", agent, "--dry-run"]).await;
        assert_eq!(tried.code, 0, "{agent}: {}", tried.stderr);
        assert!(
            tried.stdout.contains(&stack.base_url.replace("/v1", ""))
                && !tried.all().contains(&stack.home.workspace_key)
        );
        assert_eq!(contents(user.home.path()), before, "{agent}: nothing is written");
        user.ok(&["connect", agent, "-m", "some-model"]).await;
        let written = std::fs::read_to_string(&path).unwrap();
        user.ok(&["connect", agent, "-m", "some-model"]).await;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written, "{agent}: twice is once");
        assert!(agent == "codex" || written.contains(&stack.home.workspace_key), "{agent}: {written}");
        user.ok(&["connect", agent, "--undo"]).await;
        let mut after = contents(user.home.path());
        after.remove(".config/portcullis/connected.json");
        let mut before = before;
        before.remove(".config/portcullis/connected.json");
        assert_eq!(after, before, "{agent}");
    }
}

#[tokio::test]
async fn what_somebody_else_set_is_left_alone() {
    let stack = Stack::start().await;
    let user = User::new(&stack.base_url, &stack.home.workspace_key);
    let mine = "{\"env\": {\"ANTHROPIC_BASE_URL\": \"https://mine.test\"}}";
    std::fs::create_dir(user.path(".claude")).unwrap();
    std::fs::write(user.path(".claude/settings.json"), mine).unwrap();
    let ended = user.run(&["connect", "claude-code"]).await;
    assert!(ended.code == 1 && ended.stderr.contains("env.ANTHROPIC_BASE_URL"), "{}", ended.stderr);
    user.ok(&["connect", "claude-code", "--undo"]).await;
    assert_eq!(std::fs::read_to_string(user.path(".claude/settings.json")).unwrap(), mine);
}
