//! The pictures of a result, as a model is shown them. Pure.

use zeph_agent::message::Image;
use zeph_core::output::Content;

/// Pictures of one result.
const IMAGES_MAX: usize = 16;

/// The pictures of a result. Those that no provider takes are told in its text instead.
pub(super) fn images(attachments: &[Content], text: &mut String) -> Vec<Image> {
    let (mut images, mut omitted) = (Vec::new(), Vec::new());
    for content in attachments {
        let Content::Image(blob) = content else {
            continue;
        };
        match Image::read(&blob.data) {
            Ok(image) if images.len() < IMAGES_MAX => images.push(image),
            Ok(_) => omitted.push(format!("there are more than {IMAGES_MAX}")),
            Err(why) => omitted.push(why),
        }
    }
    if let Some(why) = omitted.first() {
        let line = match omitted.len() {
            1 => format!("[image omitted: {why}]"),
            n => format!("[{n} images omitted: {why}]"),
        };
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        text.push_str(&format!("{end}{line}"));
    }
    images
}

#[cfg(test)]
mod tests {
    use zeph_core::output::{Blob, Content};

    use super::{IMAGES_MAX, images};

    /// How many pictures a model is shown of these files, and what its text says.
    fn shown(files: &[&[u8]], text: &str) -> (usize, String) {
        let pictures = files.iter().map(|file| {
            Content::Image(Blob {
                media_type: "image/png".to_owned(),
                data: file.to_vec(),
            })
        });
        let pictures: Vec<Content> = pictures.collect();
        let mut text = text.to_owned();
        (images(&pictures, &mut text).len(), text)
    }

    #[test]
    fn what_no_provider_takes_is_told_instead_of_shown() {
        let gif = b"GIF89a".as_slice();
        assert_eq!(shown(&[gif, gif], "two"), (2, "two".to_owned()));
        let (n_shown, text) = shown(&[b"<svg/>", gif, b""], "drawn");
        assert_eq!(n_shown, 1);
        let why = "it is not a PNG, JPEG, GIF or WebP file";
        assert_eq!(text, format!("drawn\n[2 images omitted: {why}]"));
        let (n_shown, text) = shown(&vec![gif; IMAGES_MAX + 1], "");
        assert_eq!(n_shown, IMAGES_MAX);
        assert_eq!(text, "[image omitted: there are more than 16]");
    }
}
