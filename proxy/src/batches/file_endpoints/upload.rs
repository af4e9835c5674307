//! An upload: the form is read as it comes, and its file goes into the store part by part. One that fails in any way is
//! taken back; one whose process dies is swept by the control plane.

use super::FilesRequest;
use crate::batches::FileEndpoints;
use crate::batches::files::{Finish, FinishedUpload, Intake, ManagedFiles, PART_BYTES};
use crate::net::downstream::Downstream;
use crate::request::multipart::upload::{FormPiece, UploadForm};
use crate::request::receive::{BodyPieces, MemoryShare, NotReceived};
use crate::request::refusal::Refusal;
use chrono::{DateTime, TimeDelta, Utc};
use http::header;
use serde_json::Value;
use std::time::Duration;
use uuid::Uuid;

/// Of everything in the form but the file.
const FORM_OVERHEAD: u64 = 512 << 10;
/// For the whole upload. What takes longer may be swept.
const MAX_UPLOAD_TIME: Duration = Duration::from_secs(3600);
/// In characters, as the column has it.
const MAX_NAME: usize = 255;
const PURPOSES: [&str; 2] = ["batch", "fine-tune"];
/// Seconds after which a file may be asked to expire.
const EXPIRY: std::ops::RangeInclusive<i64> = 3600..=2_592_000;

impl FileEndpoints {
    pub(super) async fn upload(
        &self,
        client: &mut impl Downstream,
        files: &ManagedFiles,
        asked: &FilesRequest,
    ) -> Result<Value, NotReceived> {
        let headers = &client.head().headers;
        // Its form is read as it comes, and kept as it is.
        if headers.get_all(header::CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
            return Err(Refusal::upload_is_encoded().into());
        }
        let form = UploadForm::from_headers(headers).ok_or_else(Refusal::upload_not_a_form)?;
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.trim().parse().ok());
        let waits = headers.contains_key(header::EXPECT);
        let announced: u64 = announced.unwrap_or(0);
        if announced.saturating_sub(FORM_OVERHEAD) > files.settings.files_max_bytes {
            return Err(Refusal::file_too_large(files.settings.files_max_bytes).into());
        }
        let mut share: MemoryShare<'_> = MemoryShare::none(&self.body_limits.memory, asked.owner.tenant());
        share.grow(match announced {
            0 => PART_BYTES,
            length => usize::try_from(length).unwrap_or(PART_BYTES).min(PART_BYTES),
        })?;
        let held = announced.saturating_sub(FORM_OVERHEAD);
        let begun = files.rows.begin(asked.owner, asked.key, held).await?;
        let id = begun.ok_or_else(Refusal::file_quota)?;
        if waits {
            client.write_continue().await?;
        }
        let taken =
            tokio::time::timeout(MAX_UPLOAD_TIME, self.take_in(client, files, asked, UploadBegun { id, held }, form))
                .await;
        let taken = taken.unwrap_or_else(|_| Err(Refusal::body_timeout().into()));
        if taken.is_err() {
            // If this fails too the row is swept later.
            let _ = files.rows.discard(asked.owner, id).await;
        }
        taken
    }

    async fn take_in(
        &self,
        client: &mut impl Downstream,
        files: &ManagedFiles,
        asked: &FilesRequest,
        UploadBegun { id, mut held }: UploadBegun,
        mut form: UploadForm,
    ) -> Result<Value, NotReceived> {
        let most = files.settings.files_max_bytes;
        let mut pieces = BodyPieces::new(self.body_limits.pace);
        let mut intake = Intake::new(&files.store, asked.owner, id);
        let (mut fields, mut received, mut is_whole) = (UploadFields::default(), 0_u64, false);
        while let Some(piece) = pieces.next_piece(client).await? {
            received += piece.len() as u64;
            form.push(&piece);
            while let Some(found) = form.next_piece().map_err(|_| Refusal::invalid_form())? {
                match found {
                    FormPiece::Field { name, value } => fields.set(&name, value)?,
                    FormPiece::File { field, filename } => fields.begin_file(&field, &filename)?,
                    FormPiece::Bytes(bytes) => {
                        let needed = intake.bytes() + bytes.len() as u64;
                        if needed > held {
                            let more = files.rows.hold(asked.owner, id, needed, needed + PART_BYTES as u64).await?;
                            held = more.ok_or_else(Refusal::file_quota)?;
                        }
                        intake.take(bytes).await?;
                    }
                    FormPiece::End => is_whole = true,
                }
                if intake.bytes() > most {
                    return Err(Refusal::file_too_large(most).into());
                }
            }
            if received > most.saturating_add(FORM_OVERHEAD) {
                return Err(Refusal::file_too_large(most).into());
            }
        }
        if !is_whole {
            return Err(Refusal::invalid_form().into());
        }
        let bytes = intake.finish().await?;
        let upload = fields.finish(bytes, files.settings.files_retention_days, Utc::now())?;
        match files.rows.finish(asked.owner, id, &upload).await? {
            Finish::Stored(file) => Ok(file.to_json()),
            Finish::OverQuota => Err(Refusal::file_quota().into()),
        }
    }
}

/// An upload that has a row.
struct UploadBegun {
    id: Uuid,
    /// Bytes that the workspace's quota has room for.
    held: u64,
}

/// What a form says beside its file.
#[derive(Debug, Default)]
struct UploadFields {
    filename: Option<String>,
    purpose: Option<String>,
    expires_in_s: Option<i64>,
}

impl UploadFields {
    fn set(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        match name {
            "purpose" if PURPOSES.contains(&&*value) => self.purpose = Some(value),
            "purpose" => {
                let message =
                    "files that the gateway keeps have the purpose batch or fine-tune; for others name a provider";
                return Err(wrong(message, "purpose"));
            }
            "expires_after[anchor]" if value != "created_at" => {
                return Err(wrong("the anchor must be created_at", "expires_after"));
            }
            "expires_after[seconds]" => {
                let seconds = value.trim().parse().ok().filter(|seconds| EXPIRY.contains(seconds));
                let outside = || wrong("seconds must be from 3600 to 2592000", "expires_after");
                self.expires_in_s = Some(seconds.ok_or_else(outside)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_file(&mut self, field: &str, filename: &str) -> Result<(), Refusal> {
        if field != "file" || self.filename.is_some() {
            return Err(wrong("the form must have one file, in the field `file`", "file"));
        }
        let last = filename.rsplit(['/', '\\']).next().unwrap_or_default();
        let name: String = last.chars().filter(|letter| !letter.is_control()).take(MAX_NAME).collect();
        self.filename = Some(if name.is_empty() { "file".into() } else { name });
        Ok(())
    }

    fn finish(self, bytes: u64, retention_days: u32, now: DateTime<Utc>) -> Result<FinishedUpload, Refusal> {
        let filename = self.filename.filter(|_| bytes > 0);
        let filename = filename.ok_or_else(|| wrong("the form has no file, or an empty one", "file"))?;
        let missing = || wrong("the form must say what the file is for", "purpose");
        let purpose = self.purpose.ok_or_else(missing)?;
        let retention = (retention_days > 0).then(|| i64::from(retention_days) * 86_400);
        let seconds = [retention, self.expires_in_s].into_iter().flatten().min();
        let expires_at = seconds.and_then(|seconds| now.checked_add_signed(TimeDelta::try_seconds(seconds)?));
        Ok(FinishedUpload { filename, purpose, bytes, expires_at })
    }
}

fn wrong(message: &str, field: &str) -> Refusal {
    Refusal::invalid_parameter(message.to_owned(), field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)], file: &str) -> Result<FinishedUpload, Refusal> {
        let mut upload = UploadFields::default();
        upload.begin_file("file", file)?;
        for (name, value) in fields {
            upload.set(name, (*value).to_owned())?;
        }
        upload.finish(3, 30, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn names_are_bounded_and_expiry_is_the_sooner_one() {
        let purpose = ("purpose", "batch");
        for (name, expected) in
            [("../a/b.jsonl", "b.jsonl"), ("C:\\x\\y.jsonl", "y.jsonl"), ("a\0\nb", "ab"), ("", "file")]
        {
            assert_eq!(read(&[purpose], name).unwrap().filename, expected);
        }
        assert_eq!(read(&[purpose], &"é".repeat(400)).unwrap().filename.chars().count(), MAX_NAME);
        for (seconds, expected) in [("3600", 3600), ("2592000", 2_592_000)] {
            let upload = read(&[purpose, ("expires_after[seconds]", seconds)], "a").unwrap();
            assert_eq!(upload.expires_at.unwrap().timestamp(), expected);
        }
    }

    #[test]
    fn what_a_form_says_is_checked() {
        let purpose = ("purpose", "batch");
        for fields in [
            &[][..],
            &[("purpose", "vision")],
            &[purpose, ("expires_after[seconds]", "3599")],
            &[purpose, ("expires_after[seconds]", "x")],
            &[purpose, ("expires_after[anchor]", "now")],
        ] {
            assert_eq!(read(fields, "a").unwrap_err().status, 400, "{fields:?}");
        }
        let mut upload = UploadFields::default();
        assert!(upload.begin_file("other", "a").is_err());
        upload.begin_file("file", "a").unwrap();
        assert!(upload.begin_file("file", "b").is_err());
        upload.set("purpose", "batch".into()).unwrap();
        assert!(upload.finish(0, 0, DateTime::UNIX_EPOCH).is_err());
    }
}
