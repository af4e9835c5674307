//! Rows that a provider answered without a word of what they used: guessed from what was asked and what was answered, as of any
//! call, and marked so.

use super::DayBatches;
use super::family;
use crate::batches::files::FileReader;
use crate::batches::record::BatchRecord;
use crate::batches::rows::{self, LinePlace};
use crate::limits::usage::{rough_tokens_of_any, rough_tokens_of_beginning};
use crate::runtime::small_pool::PostgresAway;
use shared::providers::Family;

/// So much of a row is read; beyond it the same density is supposed.
const MAX_READ: u64 = 64 << 10;
/// Of text in JSON, about: of a row that is not there any more.
const BYTES_PER_TOKEN: u64 = 4;

/// Prompt and completion tokens. Of an answer that is longer than what is here, `whole` says at least how long it is.
pub(super) async fn guessed_use(
    day: &DayBatches,
    batch: &BatchRecord,
    custom_id: &str,
    answered: &[u8],
    whole: u64,
) -> Result<(u64, u64), PostgresAway> {
    let place = rows::place_of(&day.batches.pool, batch.id, custom_id).await?;
    let prompt = match place {
        None => 0,
        Some(place) => match beginning_of_line(day, batch, &place).await {
            Some(line) => rough_tokens_of_beginning(&line, place.bytes),
            None => place.bytes / BYTES_PER_TOKEN,
        },
    };
    let completion = match family(batch) == Family::Embed {
        true => 0,
        false if (answered.len() as u64) < whole => rough_tokens_of_beginning(answered, whole),
        false => rough_tokens_of_any(answered),
    };
    Ok((prompt, completion))
}

/// None when the input was deleted, or cannot be read now.
async fn beginning_of_line(day: &DayBatches, batch: &BatchRecord, place: &LinePlace) -> Option<Vec<u8>> {
    let files = day.files.as_ref()?;
    let input = files.rows.find(batch.owner, batch.input_file).await.ok()??;
    let range = place.at..place.at.saturating_add(place.bytes.min(MAX_READ));
    let mut reader = FileReader::new(&files.store, batch.owner, &input, &range);
    let mut line = Vec::new();
    while let Some(piece) = reader.next_piece().await.ok()? {
        line.extend_from_slice(&piece);
    }
    Some(line)
}
