//! An upload is read the same however it is cut, and what is no form is refused.

use super::*;
use proptest::prelude::*;

fn form(file: &[u8]) -> Vec<u8> {
    let mut form = b"--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"a;b.jsonl\"\r\nContent-Type: x/y\r\n\r\n"
        .to_vec();
    form.extend_from_slice(file);
    form.extend_from_slice(b"\r\n--xYz--\r\nepilogue");
    form
}

/// The fields, the names of files, their bytes, and whether the end came.
fn read<'p>(pieces: impl Iterator<Item = &'p [u8]>) -> Result<(Vec<String>, Vec<u8>, bool), BrokenForm> {
    let mut form = UploadForm::new(b"xYz");
    let (mut parameters, mut bytes, mut is_whole) = (Vec::new(), Vec::new(), false);
    for piece in pieces {
        form.push(piece);
        while let Some(found) = form.next_piece()? {
            match found {
                FormPiece::Field { name, value } => parameters.push(format!("{name}={value}")),
                FormPiece::File { field, filename } => parameters.push(format!("{field}:{filename}")),
                FormPiece::Bytes(piece) => bytes.extend_from_slice(&piece),
                FormPiece::End => is_whole = true,
            }
        }
        assert!(form.waiting.len() <= MAX_HEAD + piece.len(), "it holds {} bytes", form.waiting.len());
    }
    Ok((parameters, bytes, is_whole))
}

proptest! {
    #[test]
    fn a_form_is_the_same_however_it_is_cut(
        file in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'x'), any::<u8>()], 0..300),
        length in 1_usize..40,
    ) {
        prop_assume!(memmem::find(&file, b"--xYz").is_none());
        let whole = form(&file);
        let (parameters, bytes, is_whole) = read(whole.chunks(length)).unwrap();
        prop_assert_eq!(parameters, ["purpose=batch", "file:a;b.jsonl"]);
        prop_assert_eq!(bytes, file);
        prop_assert!(is_whole);
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(bytes.chunks(7));
        let _ = read(form(&bytes).chunks(5));
    }
}

#[test]
fn what_is_no_whole_form_is_told_apart() {
    let head = "--xYz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    let long = format!("{head}{}", "v".repeat(MAX_FIELD + 100));
    let many = format!("{}--xYz--", format!("{head}v\r\n").repeat(MAX_PARTS + 1));
    for (body, expected) in [
        (String::new(), Some(false)),
        ("--other--".into(), Some(false)),
        (format!("{head}v"), Some(false)),
        (format!("{head}v\r\n--xYz-"), Some(false)),
        (format!("{head}v\r\n--xYz--"), Some(true)),
        ("--xYzz\r\n".into(), None),
        (format!("--xYz\r\n{}", "h".repeat(MAX_HEAD + 10)), None),
        (long, None),
        (many, None),
    ] {
        let found = read(body.as_bytes().chunks(1000)).ok().map(|(_, _, is_whole)| is_whole);
        assert_eq!(found, expected, "{body:.60}");
    }
}

#[test]
fn a_name_in_the_longer_spelling_is_read() {
    let body = "--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename*=UTF-8''na%C3%AFve\r\n\r\n\r\n--xYz--";
    assert_eq!(read(body.as_bytes().chunks(3)).unwrap(), (vec!["file:naïve".to_owned()], Vec::new(), true));
}
