//! A matrix from a safetensors file: a length, a header as JSON, and numbers. Only what static embeddings need is read: one
//! matrix of floats, a row for each token.

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

const MAX_FILE: u64 = 1 << 30;
const MAX_HEADER: usize = 1 << 20;

pub struct Matrix {
    columns: usize,
    values: Vec<f32>,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl Matrix {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let length = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
        ensure!(length <= MAX_FILE, "{} is longer than {MAX_FILE} bytes", path.display());
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        Self::read(&bytes).with_context(|| path.display().to_string())
    }

    fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        let (length, rest) = bytes.split_first_chunk::<8>().context("too short")?;
        let length = usize::try_from(u64::from_le_bytes(*length))?;
        ensure!(length <= MAX_HEADER && length <= rest.len(), "its header is too long");
        let (header, data) = rest.split_at(length);
        let header: HashMap<String, serde_json::Value> = serde_json::from_slice(header).context("its header")?;
        let mut matrices = header.into_iter().filter(|(name, _)| name != "__metadata__").filter_map(|(_, value)| {
            serde_json::from_value::<Tensor>(value).ok().filter(|tensor| tensor.shape.len() == 2)
        });
        let (Some(tensor), None) = (matrices.next(), matrices.next()) else { bail!("it must hold one matrix") };
        Self::of_tensor(&tensor, data)
    }

    fn of_tensor(tensor: &Tensor, data: &[u8]) -> anyhow::Result<Self> {
        let (start, end) = tensor.data_offsets;
        let data = data.get(start..end).context("its matrix is not in the file")?;
        let (size, read): (usize, fn(&[u8]) -> f32) = match tensor.dtype.as_str() {
            "F32" => (4, |bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            "F16" => (2, |bytes| half(u16::from_le_bytes([bytes[0], bytes[1]]))),
            "BF16" => (2, |bytes| f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16)),
            other => bail!("numbers of the kind {other} are not read"),
        };
        let (rows, columns) = (tensor.shape[0], tensor.shape[1]);
        let fits = rows.checked_mul(columns).and_then(|count| count.checked_mul(size)) == Some(data.len());
        ensure!(
            fits && rows > 0 && (1..=super::super::MAX_DIMENSIONS).contains(&columns),
            "its matrix has another size"
        );
        Ok(Self { columns, values: data.chunks_exact(size).map(read).collect() })
    }

    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Nothing of a token that has no row.
    pub fn row(&self, token: u32) -> &[f32] {
        let start = usize::try_from(token).ok().and_then(|token| token.checked_mul(self.columns));
        start.and_then(|start| self.values.get(start..start.checked_add(self.columns)?)).unwrap_or_default()
    }
}

/// A number of 16 bits: a sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from((bits >> 10) & 0x1f), f32::from(bits & 0x3ff) / 1024.0);
    match exponent {
        0 => sign * fraction * 2.0_f32.powi(-14),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes
    }

    #[test]
    fn a_matrix_is_read_in_each_width() {
        let halves = [0x3c00_u16, 0xc000, 0x0001, 0x3555].map(u16::to_le_bytes).concat();
        let matrix =
            Matrix::read(&file(r#"{"e":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}}"#, &halves)).unwrap();
        assert_eq!(matrix.row(0), [1.0, -2.0]);
        assert!((matrix.row(1)[1] - 0.333_25).abs() < 0.000_1 && matrix.row(1)[0] > 0.0);
        assert!(matrix.row(2).is_empty() && matrix.row(u32::MAX).is_empty());
        let floats = [1.5_f32, -3.0].map(f32::to_le_bytes).concat();
        let header = r#"{"__metadata__":{"a":"b"},"e":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#;
        assert_eq!(Matrix::read(&file(header, &floats)).unwrap().row(0), [1.5, -3.0]);
        let brains = [0x3f80_u16, 0xbf80].map(u16::to_le_bytes).concat();
        let header = r#"{"e":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}}"#;
        assert_eq!(Matrix::read(&file(header, &brains)).unwrap().row(1), [-1.0]);
    }

    #[test]
    fn what_is_no_such_file_is_an_error() {
        for bytes in [
            vec![],
            u64::MAX.to_le_bytes().to_vec(),
            file("{}", &[]),
            file("no", &[]),
            file(r#"{"e":{"dtype":"F32","shape":[2,2],"data_offsets":[0,8]}}"#, &[0; 8]),
            file(r#"{"e":{"dtype":"F32","shape":[1,2],"data_offsets":[0,99]}}"#, &[0; 8]),
            file(r#"{"e":{"dtype":"F32","shape":[1,2],"data_offsets":[8,0]}}"#, &[0; 8]),
            file(r#"{"e":{"dtype":"I64","shape":[1,1],"data_offsets":[0,8]}}"#, &[0; 8]),
            file(r#"{"e":{"dtype":"F32","shape":[18446744073709551615,2],"data_offsets":[0,8]}}"#, &[0; 8]),
        ] {
            assert!(Matrix::read(&bytes).is_err());
        }
    }
}
