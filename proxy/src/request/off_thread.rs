//! Work on a text that would hold up other requests, done beside the threads that serve connections.

use super::refusal::Refusal;

/// What is longer is read and written beside the threads that serve connections.
const SHORT: usize = 32 << 10;

/// Work on a text of this length, elsewhere if that takes long.
pub async fn aside<T: Send + 'static>(length: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    match length > SHORT {
        true => tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::internal()),
        false => Ok(work()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_work_leaves_the_thread_and_short_work_stays() {
        let here = std::thread::current().id();
        let thread = || std::thread::current().id();
        assert_eq!(aside(SHORT, thread).await.unwrap(), here);
        assert_ne!(aside(SHORT + 1, thread).await.unwrap(), here);
    }
}
