//! Rows in the binary form of `COPY`, written straight into one buffer. Fifty columns of some twenty bytes each cost more
//! through a general writer than to work out.

use bytes::{BufMut as _, Bytes, BytesMut};
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use tokio_postgres::types::{ToSql as _, Type};
use uuid::Uuid;

/// What every such stream begins with: a signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Microseconds from 1970 to 2000, where Postgres begins to count.
const EPOCH: i64 = 946_684_800_000_000;

/// As much is sent at once; a row more has room.
const ENOUGH: usize = 64 << 10;
const ROOM: usize = ENOUGH + (8 << 10);

/// Rows that are not sent yet.
pub struct Copied(BytesMut);

/// Postgres has no form for a value: it is too long, or beyond its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a value cannot be written in the form of Postgres")]
pub struct Unwritable;

impl Default for Copied {
    fn default() -> Self {
        let mut bytes = BytesMut::with_capacity(ROOM);
        bytes.put_slice(HEADER);
        Self(bytes)
    }
}

impl Copied {
    /// A row of so many columns.
    pub fn row(&mut self, columns: u16) -> RowColumns<'_> {
        self.0.put_u16(columns);
        RowColumns { out: &mut self.0, missing: columns }
    }

    /// What there is so far, when it is enough to be sent.
    pub fn full(&mut self) -> Option<Bytes> {
        if self.0.len() < ENOUGH {
            return None;
        }
        let full = std::mem::replace(&mut self.0, BytesMut::with_capacity(ROOM));
        Some(full.freeze())
    }

    /// The rest.
    pub fn end(mut self) -> Bytes {
        self.0.put_i16(-1);
        self.0.freeze()
    }
}

/// The columns of one row, in their order.
pub struct RowColumns<'f> {
    out: &'f mut BytesMut,
    missing: u16,
}

impl RowColumns<'_> {
    pub fn uuid(&mut self, value: Option<Uuid>) {
        self.fixed(value.map(Uuid::into_bytes));
    }

    pub fn time(&mut self, value: DateTime<Utc>) {
        self.int8(value.timestamp_micros() - EPOCH);
    }

    pub fn int2(&mut self, value: i16) {
        self.fixed(Some(value.to_be_bytes()));
    }

    pub fn int4(&mut self, value: Option<i32>) {
        self.fixed(value.map(i32::to_be_bytes));
    }

    pub fn int8(&mut self, value: i64) {
        self.fixed(Some(value.to_be_bytes()));
    }

    pub fn bool(&mut self, value: bool) {
        self.fixed(Some([u8::from(value)]));
    }

    pub fn text(&mut self, value: Option<&str>) -> Result<(), Unwritable> {
        let Some(text) = value else { return self.null() };
        self.length(text.len())?;
        self.out.put_slice(text.as_bytes());
        Ok(())
    }

    pub fn json(&mut self, value: Option<&str>) -> Result<(), Unwritable> {
        /// What `jsonb` begins with.
        const VERSION: u8 = 1;
        let Some(text) = value else { return self.null() };
        self.length(text.len().saturating_add(1))?;
        self.out.put_u8(VERSION);
        self.out.put_slice(text.as_bytes());
        Ok(())
    }

    pub fn numeric(&mut self, value: Option<Decimal>) -> Result<(), Unwritable> {
        let Some(number) = value else { return self.null() };
        let at = self.out.len();
        self.length(0)?;
        number.to_sql(&Type::NUMERIC, self.out).map_err(|_| Unwritable)?;
        let length = i32::try_from(self.out.len() - at - 4).map_err(|_| Unwritable)?;
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Every column has its value.
    pub fn end(self) -> Result<(), Unwritable> {
        if self.missing == 0 { Ok(()) } else { Err(Unwritable) }
    }

    fn fixed<const N: usize>(&mut self, value: Option<[u8; N]>) {
        self.missing = self.missing.wrapping_sub(1);
        match value {
            Some(bytes) => {
                self.out.put_i32(N as i32);
                self.out.put_slice(&bytes);
            }
            None => self.out.put_i32(-1),
        }
    }

    fn null(&mut self) -> Result<(), Unwritable> {
        self.fixed::<0>(None);
        Ok(())
    }

    fn length(&mut self, length: usize) -> Result<(), Unwritable> {
        self.missing = self.missing.wrapping_sub(1);
        self.out.put_i32(i32::try_from(length).map_err(|_| Unwritable)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_form_that_postgres_reads() {
        let mut copied = Copied::default();
        let mut row = copied.row(9);
        row.uuid(None);
        row.int2(-2);
        row.int4(Some(3));
        row.bool(true);
        row.text(Some("é")).unwrap();
        row.json(Some("{}")).unwrap();
        row.numeric(Some("-12.5".parse().unwrap())).unwrap();
        row.time(DateTime::from_timestamp_micros(EPOCH + 1).unwrap());
        row.text(None).unwrap();
        row.end().unwrap();
        let bytes = copied.end();
        let (header, rest) = bytes.split_at(HEADER.len());
        assert_eq!((header, header.len()), (HEADER, 19));
        let mut expected = vec![0, 9];
        expected.extend([255; 4]);
        expected.extend([0, 0, 0, 2, 255, 254]);
        expected.extend([0, 0, 0, 4, 0, 0, 0, 3]);
        expected.extend([0, 0, 0, 1, 1]);
        expected.extend([0, 0, 0, 2, 0xc3, 0xa9]);
        expected.extend([0, 0, 0, 3, 1, b'{', b'}']);
        // Two digits to the base of 10,000, the first of weight 0, negative, one decimal: 12 and 5000.
        expected.extend([0, 0, 0, 12, 0, 2, 0, 0, 0x40, 0, 0, 1, 0, 12, 0x13, 0x88]);
        expected.extend([0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
        expected.extend([255; 4]);
        expected.extend([255; 2]);
        assert_eq!(rest, expected);
    }

    #[test]
    fn a_row_that_lacks_a_column_is_told() {
        let mut copied = Copied::default();
        let mut row = copied.row(2);
        row.bool(false);
        assert_eq!(row.end(), Err(Unwritable));
    }
}
