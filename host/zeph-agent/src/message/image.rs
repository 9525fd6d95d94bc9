//! Pictures that providers take: one that they do not take would make every later request of the conversation fail.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Bytes of a picture: in base64 these are the 5 MiB that the strictest provider takes.
pub const IMAGE_BYTES_MAX: usize = 5 * 1_048_576 / 4 * 3;

/// A picture.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// The file, in base64.
    pub base64: String,
}

impl Image {
    /// The picture in a file. What it is, is seen by how the file begins, whatever others call it.
    ///
    /// Errors: why no provider takes it, such as `it is …`.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let media_type = media_type(bytes)
            .ok_or_else(|| "it is not a PNG, JPEG, GIF or WebP file".to_owned())?;
        if bytes.len() > IMAGE_BYTES_MAX {
            return Err(format!("it is longer than {IMAGE_BYTES_MAX} bytes"));
        }
        Ok(Self {
            media_type: media_type.to_owned(),
            base64: STANDARD.encode(bytes),
        })
    }
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes)", self.media_type, self.base64.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{IMAGE_BYTES_MAX, Image};

    #[test]
    fn a_picture_is_what_its_file_begins_like() {
        for (bytes, media_type) in [
            (&b"\x89PNG\r\n\x1a\n rest"[..], Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF87a", Some("image/gif")),
            (b"GIF89a...", Some("image/gif")),
            (b"RIFF\0\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"", None),
            (b"RIFF\0\0\0\0WAVE", None),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", None),
            (b"BM6\0", None),
            (b"\x89PNG", None),
        ] {
            let read = Image::read(bytes).ok().map(|image| image.media_type);
            assert_eq!(read.as_deref(), media_type, "{bytes:?}");
        }
    }

    #[test]
    fn a_picture_is_as_long_as_the_strictest_provider_takes() {
        let mut bytes = b"GIF89a".to_vec();
        bytes.resize(IMAGE_BYTES_MAX, 0);
        assert_eq!(Image::read(&bytes).unwrap().base64.len(), 5 * 1_048_576);
        bytes.push(0);
        assert!(Image::read(&bytes).unwrap_err().contains("3932160"));
    }
}
