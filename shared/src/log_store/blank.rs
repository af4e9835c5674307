//! Takes calls out of a pack without moving the others: their bytes become a frame that zstd skips, as long as what stood
//! there, all zeros. So every other row keeps its range, a reader sees the old pack or the new one and both are right for
//! it, and doing it again changes nothing.
//!
//! Two rewrites of one pack at a time could undo each other: whoever calls holds a lock of that pack.

use super::{Error, LogStore};
use bytes::{Bytes, BytesMut};
use futures::stream::StreamExt as _;
use std::ops::Range;

/// How a frame begins that a decoder skips; its length follows, in four bytes.
const SKIPPED: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();
const HEAD: u64 = 8;

impl LogStore {
    /// Rewrites a pack so that nothing of these ranges is in it. That there is no such pack is no error.
    pub async fn blank(&self, pack: &str, ranges: &[Range<u64>]) -> Result<(), Error> {
        let Some((length, mut pieces)) = self.read(pack).await? else { return Ok(()) };
        // A range beyond the end is not of this pack; nothing of it can be kept.
        if ranges.iter().any(|range| range.end > length || range.start >= range.end) {
            return Err(Error::Damaged);
        }
        let mut writer = self.writer(pack)?;
        let mut at = 0;
        let copied = async {
            while let Some(piece) = pieces.next().await {
                let piece = blanked(piece?, at, ranges);
                at += piece.len() as u64;
                writer.write(piece).await?;
            }
            if at == length { Ok(()) } else { Err(Error::Away("an object ended early".into())) }
        };
        match copied.await {
            Ok(()) => writer.finish().await,
            Err(error) => {
                // What was written of it is of no use, and the old pack is still there.
                let _ = writer.abort().await;
                Err(error)
            }
        }
    }
}

/// Whether these bytes are a call that was taken out.
pub(super) fn is_blank(frame: &[u8]) -> bool {
    frame.starts_with(&SKIPPED)
}

/// A piece of a pack that begins at `at`, with the parts of the ranges in it replaced.
fn blanked(piece: Bytes, at: u64, ranges: &[Range<u64>]) -> Bytes {
    let end = at + piece.len() as u64;
    if !ranges.iter().any(|range| range.start < end && at < range.end) {
        return piece;
    }
    let mut bytes = BytesMut::from(&piece[..]);
    for range in ranges {
        let head = head(range);
        for place in range.start.max(at)..range.end.min(end) {
            let inside = usize::try_from(place - range.start).ok();
            let byte = inside.and_then(|inside| head.get(inside)).copied().unwrap_or(0);
            if let Some(old) = usize::try_from(place - at).ok().and_then(|index| bytes.get_mut(index)) {
                *old = byte;
            }
        }
    }
    bytes.freeze()
}

/// What a blank of this length begins with. Every frame of zstd is longer than this head.
fn head(range: &Range<u64>) -> [u8; HEAD as usize] {
    let rest = u32::try_from((range.end - range.start).saturating_sub(HEAD)).unwrap_or(u32::MAX);
    let mut head = [0; HEAD as usize];
    head[..4].copy_from_slice(&SKIPPED);
    head[4..].copy_from_slice(&rest.to_le_bytes());
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_store::{pack, packed_key, unpack};

    /// Three calls and where each of them is.
    fn three() -> (Vec<u8>, Vec<Range<u64>>) {
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for said in ["ada was here", "bob was here", "ada again"] {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(&pack(format!("{{\"said\":\"{said}\"}}").as_bytes()).unwrap());
            ranges.push(start..bytes.len() as u64);
        }
        (bytes, ranges)
    }

    #[test]
    fn a_pack_cut_at_every_byte_is_blanked_as_a_whole_one() {
        let (bytes, ranges) = three();
        let erased = [ranges[0].clone(), ranges[2].clone()];
        let whole = blanked(Bytes::from(bytes.clone()), 0, &erased);
        assert_eq!(whole.len(), bytes.len());
        for cut in 0..=bytes.len() {
            let (one, other) = bytes.split_at(cut);
            let one = blanked(Bytes::copy_from_slice(one), 0, &erased);
            let other = blanked(Bytes::copy_from_slice(other), cut as u64, &erased);
            assert_eq!([one, other].concat(), whole, "{cut}");
        }
        assert_eq!(unpack(&whole, 1000).unwrap(), br#"{"said":"bob was here"}"#, "the others are read on");
        let kept = &whole[ranges[1].start as usize..ranges[1].end as usize];
        assert_eq!(kept, &bytes[ranges[1].start as usize..ranges[1].end as usize]);
    }

    #[tokio::test]
    async fn what_is_blanked_is_gone_and_the_rest_is_where_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::log_store::tests::store_in(folder.path());
        let (bytes, ranges) = three();
        let path = "bodies/o/w/d/h/x.pack.zst";
        let key = |n: usize| packed_key(path, &ranges[n]);
        store.put(path, Bytes::from(bytes.clone())).await.unwrap();
        assert_eq!(
            unpack(&store.body(&key(0), 1000).await.unwrap().unwrap(), 100).unwrap(),
            br#"{"said":"ada was here"}"#
        );
        for _ in 0..2 {
            store.blank(path, &[ranges[2].clone(), ranges[0].clone()]).await.unwrap();
            let left = store.get(path, 1000).await.unwrap().unwrap();
            assert_eq!(left.len(), bytes.len());
            assert_eq!((store.body(&key(0), 1000).await, store.body(&key(2), 1000).await), (Ok(None), Ok(None)));
            let bob = store.body(&key(1), 1000).await.unwrap().unwrap();
            assert_eq!(unpack(&bob, 100).unwrap(), br#"{"said":"bob was here"}"#);
        }
        let beyond = 0..bytes.len() as u64 + 1;
        assert_eq!(store.blank(path, std::slice::from_ref(&beyond)).await, Err(Error::Damaged));
        assert_eq!(store.blank("bodies/o/w/d/h/gone.pack.zst", &ranges).await, Ok(()));
        assert_eq!(store.body("bodies/o/w/d/h/gone.pack.zst#0+9", 1000).await, Ok(None));
        assert_eq!(store.body(&format!("{path}#0+9"), 8).await, Err(Error::TooLong));
        assert!(store.body(&format!("{path}#{}+9", bytes.len()), 100).await.is_err());
    }
}
