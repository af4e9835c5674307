//! A timer that always runs on a thread that serves. Tokio wakes its own driver, by a write to itself and another round
//! of waiting, whenever a timer is set that ends before all others. Beside one that ends soon, the limits of requests
//! never do.

use std::time::Duration;

const APART: Duration = Duration::from_millis(500);

/// On the present thread, for as long as its runtime lives.
pub fn start() {
    tokio::spawn(async {
        loop {
            tokio::time::sleep(APART).await;
        }
    });
}
