//! A line of the person to a working agent.

use serde::{Deserialize, Serialize};

/// The longest text of a message, and the most that its images may hold in base64: ten pictures of a screen.
pub(super) const TEXT_LIMIT: usize = 100_000;
/// See [`TEXT_LIMIT`].
pub(super) const IMAGES_LIMIT: usize = 20 * 1024 * 1024;

/// A line of the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Its name; receipts carry it.
    pub uuid: String,
    /// What they say.
    pub text: String,
    /// What they show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// When the agent is to read it.
    #[serde(default)]
    pub priority: Priority,
}

/// A picture of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// `image/png` or the like.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
}

/// When an agent is to read a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After the tool that runs.
    #[default]
    Next,
    /// As soon as the tool that runs is done; what else the turn meant to do is dropped.
    Now,
    /// After the turn.
    Later,
}

/// Says why a message cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// It is empty.
    #[error("the message is empty")]
    Empty,
    /// It is too long.
    #[error("the message has {length} bytes of text; {TEXT_LIMIT} are the most")]
    TooLong {
        /// Its length.
        length: usize,
    },
    /// Its images are too large.
    #[error("the images have {length} bytes; {IMAGES_LIMIT} are the most")]
    ImagesTooLarge {
        /// Their length in base64.
        length: usize,
    },
    /// It has an attachment that is no image the agent reads.
    #[error("`{media_type}` is no kind of image that the agent reads; it reads PNG, JPEG, GIF and WebP")]
    NoImage {
        /// What it says it is, escaped.
        media_type: String,
    },
}

impl Message {
    /// Checks that an agent can take it in.
    pub fn check(&self) -> Result<(), MessageError> {
        let images = self.images.iter().map(|image| image.data.len()).sum();
        let unknown = |image: &&Image| {
            !["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&image.media_type.as_str())
        };
        if self.text.trim().is_empty() && self.images.is_empty() {
            return Err(MessageError::Empty);
        }
        if self.text.len() > TEXT_LIMIT {
            return Err(MessageError::TooLong {
                length: self.text.len(),
            });
        }
        if images > IMAGES_LIMIT {
            return Err(MessageError::ImagesTooLarge { length: images });
        }
        match self.images.iter().find(unknown) {
            Some(image) => Err(MessageError::NoImage {
                media_type: crate::protocol::Shown::line(&image.media_type).to_string(),
            }),
            None => Ok(()),
        }
    }
}
