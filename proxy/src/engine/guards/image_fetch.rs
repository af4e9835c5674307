//! Images that a check puts into a request, fetched as media of callers always are. What they take counts as body, from the first
//! piece on until the request has them.

use crate::engine::media_fetch::{COPIES, FetchBudget, Unfetched, checked_type, fetch};
use crate::net::dial::Dialer;
use crate::request::receive::OwnedShare;
use futures::StreamExt as _;
use parking_lot::Mutex;
use shared::guardrails::remote::{Image, Images};
use std::sync::Arc;
use std::time::Instant;

/// All images of a request together.
const MAX_BYTES: usize = 20 << 20;
/// Fetched side by side.
const TOGETHER: usize = 4;

struct AllImages {
    left: usize,
    share: OwnedShare,
}

/// One image, of those that are fetched together.
struct OneImage<'a> {
    left: usize,
    all: &'a Mutex<AllImages>,
}

impl FetchBudget for OneImage<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), Unfetched> {
        self.left = self.left.checked_sub(bytes).ok_or("it is longer than the check allows")?;
        let mut all = self.all.lock();
        let too_large = || format!("all images of a request may have {MAX_BYTES} bytes together");
        all.left = all.left.checked_sub(bytes).ok_or_else(too_large)?;
        all.share.grow(bytes.saturating_mul(COPIES)).map_err(|why| Unfetched::Refused(why.into()))
    }
}

/// Each of them, or why not, by the deadline. `share` is what they count towards.
pub async fn images(
    dialer: &Dialer,
    urls: Vec<String>,
    longest: usize,
    share: OwnedShare,
    deadline: Instant,
) -> Images {
    let all = Mutex::new(AllImages { left: MAX_BYTES, share });
    let fetching = urls.into_iter().map(|url| image(dialer, url, longest, &all, deadline));
    let fetched = futures::stream::iter(fetching).buffered(TOGETHER).collect().await;
    Images { fetched, held: Some(Arc::new(all.into_inner().share)) }
}

async fn image(
    dialer: &Dialer,
    url: String,
    longest: usize,
    all: &Mutex<AllImages>,
    deadline: Instant,
) -> Result<Image, String> {
    let budget = Mutex::new(OneImage { left: longest, all });
    let fetching = fetch(dialer, url.clone(), &budget);
    let fetched = match tokio::time::timeout_at(deadline.into(), fetching).await {
        Ok(Ok(fetched)) => fetched,
        Ok(Err(Unfetched::Because(why))) => return Err(why),
        Ok(Err(Unfetched::Refused(_))) => return Err("the gateway has no room for it".into()),
        Err(_) => return Err("it did not come in time".into()),
    };
    let media_type = checked_type("image", None, &fetched, &url)?;
    Ok(Image { media_type, data: openssl::base64::encode_block(&fetched.bytes) })
}
