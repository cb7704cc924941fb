//! A picture for the agent, read from a file.

use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;

use crate::host::Image;
use crate::protocol::Shown;

/// The largest picture that is read: what a message may hold, before base64.
const LIMIT: u64 = 15 * 1024 * 1024;

/// Says why there is no picture.
#[derive(Debug, thiserror::Error)]
pub(super) enum PictureError {
    /// Its file cannot be read.
    #[error("cannot read `{}`", Shown::path(Path::new(path)))]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("`{}` is larger than {} MB", Shown::path(Path::new(path)), LIMIT / 1024 / 1024)]
    TooLarge {
        /// The file.
        path: String,
    },
    /// It is none.
    #[error(
        "`{}` is no picture that the agent reads; it reads PNG, JPEG, GIF and WebP",
        Shown::path(Path::new(path))
    )]
    NoPicture {
        /// The file.
        path: String,
    },
}

/// Reads a picture; its kind is told by its bytes, not by its name. It blocks.
pub(super) fn read(path: &Path) -> Result<Image, PictureError> {
    let name = path.to_string_lossy().into_owned();
    let failed = |source| PictureError::File {
        path: name.clone(),
        source,
    };
    // Looked at first: opening a pipe would wait for its writer.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(PictureError::NoPicture { path: name });
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LIMIT {
        return Err(PictureError::TooLarge { path: name });
    }
    let Some(media_type) = kind(&bytes) else {
        return Err(PictureError::NoPicture { path: name });
    };
    Ok(Image {
        media_type: media_type.to_owned(),
        data: base64::engine::general_purpose::STANDARD.encode(&bytes),
    })
}

fn kind(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("shot.txt");
        crate::disk::write_new(&file, b"\x89PNG\r\n\x1a\n").unwrap();
        let image = read(&file).unwrap();
        assert_eq!(
            (image.media_type.as_str(), image.data.as_str()),
            ("image/png", "iVBORw0KGgo=")
        );
        let text = directory.path().join("text.png");
        crate::disk::write_new(&text, b"no picture").unwrap();
        for wrong in [text.as_path(), directory.path()] {
            assert!(
                matches!(read(wrong), Err(PictureError::NoPicture { .. })),
                "{wrong:?}"
            );
        }
        assert!(matches!(
            read(&directory.path().join("none")),
            Err(PictureError::File { .. })
        ));
    }
}
