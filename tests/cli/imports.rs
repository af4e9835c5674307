//! Another gateway's configuration, imported and applied: applications go on with the names that they use.

use crate::program::User;
use harness::Stack;

#[tokio::test]
async fn an_imported_installation_answers_by_the_names_that_applications_use() {
    let stack = Stack::start().await;
    let user = User::administrator(&stack).with("MOCK_KEY", "sk-canary-mock-0123456789");
    let host = stack.mock.url();
    let config = format!(
        "model_list:\n\
         \x20 - {{ model_name: fast, litellm_params: {{ model: openai/gpt-4o-mini, api_base: \"{host}\", api_key: os.environ/MOCK_KEY }} }}\n\
         \x20 - {{ model_name: best, litellm_params: {{ model: openai/gpt-4o, api_base: \"{host}\", api_key: os.environ/MOCK_KEY, rpm: 100 }} }}\n\
         router_settings: {{ num_retries: 1, fallbacks: [{{ best: [fast] }}], redis_host: somewhere }}\n"
    );
    std::fs::write(user.path("config.yaml"), config).unwrap();
    let imported = user.run(&["import", "litellm", "config.yaml", "-f", "tree", "--report", "report.md"]).await;
    assert_eq!(imported.code, 0, "{}", imported.all());
    let report = std::fs::read_to_string(user.path("report.md")).unwrap();
    assert!(report.contains("| 4 | `router_settings.redis_host` |"), "{report}");
    let again = user.run(&["import", "litellm", "config.yaml", "-f", "tree"]).await;
    assert!(again.code == 1 && again.stderr.contains("is not empty"), "{}", again.all());

    user.ok(&["validate", "-f", "tree"]).await;
    let applied = user.run(&["apply", "-f", "tree"]).await;
    assert_eq!(applied.code, 0, "{}", applied.all());
    let application = User::new(&stack.base_url, &stack.home.workspace_key);
    for (asked, served) in [("fast", "gpt-4o-mini"), ("best", "gpt-4o")] {
        stack
            .until(&format!("{asked} is served"), async || {
                let ended = application.run(&["try", "Hello", "-m", asked]).await;
                ended.code == 0 && ended.stdout.contains("mock provider")
            })
            .await;
        let last = stack.mock.requests().into_iter().rev().find(|request| request.path.contains("chat")).unwrap();
        assert!(String::from_utf8_lossy(&last.body).contains(&format!("\"{served}\"")), "{asked}");
    }
    let again = user.run(&["plan", "-f", "tree"]).await;
    assert_eq!(again.code, 0, "an imported tree that was applied changes nothing: {}", again.all());
}

/// The samples that the importers' own tests read.
const SAMPLES: &[(&str, &str, &str)] = &[
    ("litellm", "litellm.yaml", include_str!("../../admin/cli/src/import/samples/litellm.yaml")),
    ("portkey", "portkey.json", include_str!("../../admin/cli/src/import/samples/portkey.json")),
    ("bifrost", "bifrost.json", include_str!("../../admin/cli/src/import/samples/bifrost.json")),
    ("kong", "kong.yaml", include_str!("../../admin/cli/src/import/samples/kong.yaml")),
];

#[tokio::test]
async fn what_is_made_of_each_sample_is_accepted_by_the_control_plane() {
    for &(format, file, text) in SAMPLES {
        let stack = Stack::start().await;
        let mut user = User::administrator(&stack);
        std::fs::write(user.path(file), text).unwrap();
        user.ok(&["import", format, file, "-f", "tree", "--report", "report.md"]).await;
        let written = std::fs::read_to_string(user.path("tree/imported.yaml")).unwrap();
        for variable in variables(&written) {
            // An address is good for a key, a name and an address.
            user = user.with(variable, "https://imported.example.com");
        }
        let applied = user.run(&["apply", "-f", "tree", "--secrets-out", "secrets.json"]).await;
        assert_eq!(applied.code, 0, "{format}: {}\n{written}", applied.all());
    }
}

/// The names in `${env:NAME}`.
fn variables(text: &str) -> Vec<&str> {
    text.split("${env:").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect()
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_refused_with_its_line() {
    let user = User::without_gateway();
    std::fs::write(user.path("config.yaml"), "model_list:\n  - *anchor\n").unwrap();
    let ended = user.run(&["import", "litellm", "config.yaml"]).await;
    assert!(ended.code == 1 && ended.stderr.contains("config.yaml:2:"), "{}", ended.all());
    assert_eq!(user.run(&["import", "bifrost", "absent.json"]).await.code, 1);
}
