//! The alert rules against series made up for them, by Prometheus' own tool, which `.ci/setup test` installs.

use std::path::Path;
use std::process::Command;

#[test]
fn alerts_fire_for_what_they_are_about_and_for_nothing_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conf/prometheus");
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
        let output = Command::new("promtool").args(arguments).current_dir(&folder).output();
        let output = output.unwrap_or_else(|error| panic!("promtool cannot be run ({error}): type `.ci/setup test`"));
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "promtool {}:\n{}", arguments.join(" "), String::from_utf8_lossy(&said));
    }
}
