//! The log store: bodies of logged calls and finished exports, in a folder or a bucket.
//!
//! What lies in it begins with its kind and its tenant and then its day, so that a day of a tenant is a prefix: that is
//! all that retention, erasure and tenancy need of it. Errors are few words of our own: those of the clouds quote
//! addresses and answers, in which signatures stand.

mod blank;
mod body_key;
mod crypto;
mod error;
mod open;
mod packer;
mod writer;

pub use body_key::{BodyKey, is_pack, pack_path, packed_key};
pub use error::Error;
pub use packer::Packer;
pub use writer::Writer;

use bytes::Bytes;
use chrono::{DateTime, NaiveDate, Utc};
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// What one small object may take, all attempts together.
const MAX_TIME: Duration = Duration::from_secs(60);
/// Objects that are being stored in a folder at a time.
const FOLDER_PUTS: usize = 4;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct LogStore {
    store: Arc<dyn ObjectStore>,
    /// The folder of the URL.
    root: Path,
    is_folder: bool,
    /// Of objects that are being stored in a folder.
    folder_places: Arc<Semaphore>,
}

impl LogStore {
    /// Stores or replaces an object; nobody ever sees half of it.
    pub async fn put(&self, path: &str, bytes: Bytes) -> Result<(), Error> {
        let path = self.place(path)?;
        if !self.is_folder {
            return within(self.store.put(&path, bytes.into())).await.map(drop);
        }
        // The thread of an operation on a folder cannot be taken from it. So its place is free when it has really ended:
        // a folder that hangs holds the bytes of a few objects, and not of one more with every attempt.
        let (store, places) = (self.store.clone(), self.folder_places.clone());
        within(async move {
            let place = places.acquire_owned().await;
            let put = tokio::spawn(async move {
                let _place = place;
                store.put(&path, bytes.into()).await
            });
            put.await.unwrap_or_else(|error| Err(object_store::Error::JoinError { source: error }))
        })
        .await
        .map(drop)
    }

    /// Whether it is a folder of this machine, where each operation takes a thread while it lasts.
    pub fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// None when there is no such object. One that is longer than `most` is an error.
    pub async fn get(&self, path: &str, most: usize) -> Result<Option<Bytes>, Error> {
        let path = self.place(path)?;
        let found = within(async {
            let found = self.store.get(&path).await?;
            let length = found.meta.size;
            Ok((length, if length <= most as u64 { found.bytes().await? } else { Bytes::new() }))
        });
        match found.await {
            Ok((length, _)) if length > most as u64 => Err(Error::TooLong),
            Ok((_, bytes)) => Ok(Some(bytes)),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What is stored for the body that a row names, be it an object or a range of one. None when it is gone.
    pub async fn body(&self, key: &str, most: usize) -> Result<Option<Bytes>, Error> {
        let (pack, range) = match BodyKey::parse(key).ok_or(Error::Path)? {
            BodyKey::Object(path) => return self.get(path, most).await,
            BodyKey::Packed { pack, range } => (self.place(pack)?, range),
        };
        let length = range.end - range.start;
        if length > most as u64 {
            return Err(Error::TooLong);
        }
        match within(self.store.get_range(&pack, range)).await {
            Ok(frame) if frame.len() as u64 != length => Err(Error::Damaged),
            Ok(frame) => Ok((!blank::is_blank(&frame)).then_some(frame)),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Some bytes of an object, as many as are asked for. None when there is no such object.
    pub async fn get_range(&self, path: &str, range: Range<u64>) -> Result<Option<Bytes>, Error> {
        let path = self.place(path)?;
        let length = range.end.saturating_sub(range.start);
        match within(self.store.get_range(&path, range)).await {
            Ok(bytes) if bytes.len() as u64 != length => Err(Error::Damaged),
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The length of an object and its bytes piece by piece, for those that may be large.
    pub async fn read(&self, path: &str) -> Result<Option<(u64, BoxStream<'static, Result<Bytes, Error>>)>, Error> {
        let path = self.place(path)?;
        match within(self.store.get(&path)).await {
            Ok(found) => {
                Ok(Some((found.meta.size, found.into_stream().map_err(|error| Error::from_store(&error)).boxed())))
            }
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object. That there is none is no error.
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        let path = self.place(path)?;
        match within(self.store.delete(&path)).await {
            Err(Error::NotFound) => Ok(()),
            other => other,
        }
    }

    /// Deletes every object below a folder and answers how many there were. May be called again after a failure.
    pub async fn delete_prefix(&self, prefix: &str) -> Result<u64, Error> {
        let prefix = self.place(prefix)?;
        let found = self.store.list(Some(&prefix)).map_ok(|meta| meta.location).boxed();
        let mut deleted = 0;
        let mut gone = self.store.delete_stream(found);
        while let Some(one) = gone.next().await {
            match one.map_err(|error| Error::from_store(&error)) {
                Ok(_) | Err(Error::NotFound) => deleted += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    /// Writes an object of any length; it exists once `finish` has answered.
    pub fn writer(&self, path: &str) -> Result<Writer, Error> {
        Ok(Writer::new(self.store.clone(), self.place(path)?))
    }

    fn place(&self, path: &str) -> Result<Path, Error> {
        let path = Path::parse(path).map_err(|_| Error::Path)?;
        match path.as_ref().is_empty() {
            true => Err(Error::Path),
            false => Ok(self.root.parts().chain(path.parts()).collect()),
        }
    }
}

/// Where the body of a log lies that has an object of its own, and what its row says until it is in a pack.
pub fn body_path(organisation: Uuid, workspace: Uuid, created_at: DateTime<Utc>, id: Uuid) -> String {
    // A folder for each hour: no file system likes a million files in one.
    format!(
        "{}/{}/{id}.json.zst",
        day_prefix(organisation, workspace, created_at.date_naive()),
        created_at.format("%H")
    )
}

/// The folder of all bodies of a workspace on a day.
pub fn day_prefix(organisation: Uuid, workspace: Uuid, day: NaiveDate) -> String {
    format!("bodies/{organisation}/{workspace}/{}", day.format("%Y-%m-%d"))
}

/// The folder of a file that the gateway keeps for a workspace.
pub fn file_folder(organisation: Uuid, workspace: Uuid, id: Uuid) -> String {
    format!("files/{organisation}/{workspace}/{id}")
}

/// One of the parts that a kept file is cut into, so that whoever writes or reads it holds one at most, and what a dead
/// upload left is objects like any other.
pub fn file_part(organisation: Uuid, workspace: Uuid, id: Uuid, part: u64) -> String {
    format!("{}/{part:06}", file_folder(organisation, workspace, id))
}

/// What stands in the place of a body of which only the beginning is kept.
pub fn shortened(beginning: &str, stored: u64, length: u64) -> String {
    format!("{beginning}…[truncated: {stored} of {length} bytes kept]")
}

/// What is stored for a body. For more than one there is `Packer`.
pub fn pack(json: &[u8]) -> std::io::Result<Bytes> {
    Packer::default().pack(json)
}

/// The body from what is stored; an error when it would be longer than `most`.
pub fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;
    let mut json = Vec::new();
    let reader = zstd::stream::Decoder::new(packed).map_err(|_| Error::Damaged)?;
    let read = reader.take(most as u64 + 1).read_to_end(&mut json).map_err(|_| Error::Damaged)?;
    if read > most { Err(Error::TooLong) } else { Ok(json) }
}

async fn within<T>(action: impl Future<Output = object_store::Result<T>>) -> Result<T, Error> {
    match tokio::time::timeout(MAX_TIME, action).await {
        Ok(done) => done.map_err(|error| Error::from_store(&error)),
        Err(_) => Err(Error::Away("it does not answer in time".into())),
    }
}

#[cfg(test)]
mod tests;
