//! Media between formats: data URLs, media types, file name endings.

use crate::wire::conversation::{Media, MediaSource};

/// `data:image/png;base64,…` into its type and data; any other text is a URL.
pub(super) fn media_from_url(url: String, media_type: Option<String>) -> Media {
    match split_data_url(&url) {
        Some((stated, data)) => {
            let stated = (!stated.is_empty()).then(|| stated.to_owned());
            Media::new(MediaSource::Base64(data.to_owned()), media_type.or(stated))
        }
        None => Media::new(MediaSource::Url(url), media_type),
    }
}

fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((head.strip_suffix(";base64")?.split(';').next().unwrap_or(""), data))
}

/// Raw base64, or a data URL, as OpenAI's `file_data` may be either.
pub(super) fn media_from_data(data: String, media_type: Option<String>) -> Media {
    if data.starts_with("data:") {
        return media_from_url(data, media_type);
    }
    Media::new(MediaSource::Base64(data), media_type)
}

pub(super) fn data_url(media_type: &str, base64: &str) -> String {
    ["data:", media_type, ";base64,", base64].concat()
}

/// Endings of names and the media types they stand for; also Bedrock's names of formats.
static MEDIA_TYPES: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("pdf", "application/pdf"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("html", "text/html"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("mkv", "video/x-matroska"),
    ("webm", "video/webm"),
    ("flv", "video/x-flv"),
    ("mpeg", "video/mpeg"),
    ("wmv", "video/x-ms-wmv"),
    ("three_gp", "video/3gpp"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("flac", "audio/flac"),
    ("ogg", "audio/ogg"),
    ("opus", "audio/opus"),
    ("aac", "audio/aac"),
    ("m4a", "audio/mp4"),
];

pub(super) fn ending_of(media_type: &str) -> Option<&'static str> {
    MEDIA_TYPES.iter().find(|(_, known)| *known == media_type).map(|(ending, _)| *ending)
}

pub(super) fn type_of_ending(ending: &str) -> Option<&'static str> {
    MEDIA_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, media_type)| *media_type)
}

/// The type a URL or a file name suggests by its ending.
pub(crate) fn type_of_name(name: &str) -> Option<&'static str> {
    let path = name.split(['?', '#']).next()?;
    type_of_ending(path.rsplit_once('.')?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_url_is_taken_apart_and_put_together() {
        let media = media_from_url("data:image/png;base64,AAAA".into(), None);
        assert_eq!(media.media_type.as_deref(), Some("image/png"));
        assert_eq!(media.source, MediaSource::Base64("AAAA".into()));
        assert_eq!(data_url("image/png", "AAAA"), "data:image/png;base64,AAAA");
        for url in ["https://a/b.png", "data:nothing", "data:text/plain,plain"] {
            assert_eq!(media_from_url(url.into(), None).source, MediaSource::Url(url.into()));
        }
    }

    #[test]
    fn a_name_suggests_a_type() {
        assert_eq!(type_of_name("https://a/b.PDF?x=1.png"), Some("application/pdf"));
        assert_eq!(type_of_name("nothing"), None);
    }
}
