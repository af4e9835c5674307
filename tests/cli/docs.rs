//! `docs/cli.md` says what `--help` says.

use crate::program::User;
use std::path::Path;

/// Everything below this line is written by the program.
const MARK: &str = "<!-- written from --help: make docs-cli -->";

#[tokio::test]
async fn the_page_says_what_help_says() {
    let user = User::without_gateway();
    let mut pending = vec![Vec::new()];
    let mut written = format!("{MARK}\n");
    while let Some(words) = pending.pop() {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let help = user.ok(&[&words[..], &["--help"]].concat()).await;
        let title = [&["portcullis"], &words[..]].concat().join(" ");
        let (own, _) =
            help.split_once("Options of every command:").filter(|_| !words.is_empty()).unwrap_or((&help, ""));
        let own: Vec<&str> = own.trim_end().lines().map(str::trim_end).collect();
        written += &format!("\n### `{title}`\n\n```text\n{}\n```\n", own.join("\n"));
        let commands: Vec<String> = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| line.starts_with("  "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help")
            .map(str::to_owned)
            .collect();
        pending.extend(
            commands.into_iter().rev().map(|name| words.iter().map(|word| (*word).to_owned()).chain([name]).collect()),
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, tail) = page.split_once(MARK).expect("the page has the mark");
    if std::env::var("PAGES").is_ok_and(|pages| pages == "write") {
        std::fs::write(&path, format!("{head}{written}")).unwrap();
    } else {
        assert!(
            format!("{MARK}{tail}") == written,
            "docs/cli.md is not what --help says: make docs-cli writes it anew"
        );
    }
}

#[tokio::test]
async fn shells_and_man_can_be_fed() {
    let user = User::without_gateway();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(user.ok(&["completion", shell]).await.contains("portcullis"), "{shell}");
    }
    assert!(user.ok(&["man"]).await.contains(".TH portcullis"));
    user.ok(&["man", "--folder", "man"]).await;
    assert!(user.path("man/portcullis-keys-create.1").exists());
}
