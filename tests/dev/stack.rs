//! `gateway-dev stack`: a command meets a whole stack, and nothing of it stays.

use super::*;

fn start(command: &str, folder: &Path) -> Process {
    Process::start("gateway-dev", &["stack", "--", "sh", "-c", command], &[], folder)
}

async fn is_gone(folder: &Path) -> bool {
    let address = std::fs::read_to_string(folder.join("address")).unwrap();
    reqwest::get(address.trim()).await.is_err()
}

#[tokio::test]
async fn the_command_meets_a_stack_and_its_exit_code_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let command = "echo $METRICS_URL > address; \
        curl -sS $GATEWAY_BASE_URL/chat/completions -H \"x-gateway-api-key: $GATEWAY_WORKSPACE_KEY\" \
            -H 'x-gateway-provider: openai' -H \"x-gateway-custom-host: $MOCK_PROVIDER_URL\" \
            -H 'authorization: Bearer sk-mock' -H 'content-type: application/json' \
            -d '{\"model\":\"m\",\"messages\":[]}' > answer; exit 7";
    let mut stack = start(command, folder.path());
    let status = stack.ended_within(Duration::from_secs(120)).await;
    assert_eq!(status.code(), Some(7), "{}", stack.log());
    let answer = std::fs::read_to_string(folder.path().join("answer")).unwrap();
    assert!(answer.contains("chat.completion"), "{answer}");
    assert!(is_gone(folder.path()).await);
}

#[tokio::test]
async fn a_stack_that_is_told_to_leave_takes_its_command_and_its_programs_along() {
    let folder = tempfile::tempdir().unwrap();
    let mut stack = start("echo $METRICS_URL > address; echo $$ > half; mv half pid; exec sleep 600", folder.path());
    until("the command runs", async || folder.path().join("pid").exists()).await;
    stack.signal(Signal::TERM);
    assert_eq!(stack.ended_within(Duration::from_secs(60)).await.code(), Some(143));
    let command = std::fs::read_to_string(folder.path().join("pid")).unwrap().trim().parse().unwrap();
    assert!(process::wait_until(Duration::from_secs(10), || !process::is_running(command)));
    assert!(is_gone(folder.path()).await);
}
