//! The shortest way through the control plane, direct and by way of the proxy.

use harness::{Client, Stack};

#[tokio::test]
async fn the_control_plane_answers_on_its_own_port_and_through_the_proxy() {
    let stack = Stack::start().await;
    for base_url in [&stack.admin_url, &stack.base_url] {
        let refused = Client::new(base_url).get("/admin/workspaces").await;
        assert_eq!(refused.status, 401, "{base_url}: {}", refused.text());
        let known = Client::new(base_url).with_key(&stack.home.admin_key).get("/admin/workspaces").await;
        assert_ne!(known.status, 401, "{base_url}: {}", known.text());
        assert_ne!(known.status, 404, "{base_url}: {}", known.text());
    }
}
