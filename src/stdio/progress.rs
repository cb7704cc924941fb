//! Progress on its way to the client: its own token, values that rise.

use bytes::Bytes;
use serde_json::json;

use crate::protocol::{Object, Splice};
use crate::proxy::Progress;

/// What was told of a call so far: progress must rise.
#[derive(Default)]
pub(super) struct Told {
    starts: u32,
}

impl Told {
    /// Steps of a start are thousandths, so that what the dependency counts itself comes out above them.
    fn last(&self) -> f64 {
        f64::from(self.starts) / 1000.0
    }

    /// Returns the parameters of the next notification; `None` where the value would not rise.
    pub(super) fn params(&mut self, token: &str, progress: Progress) -> Option<Vec<Bytes>> {
        match progress {
            Progress::Start(text) => {
                self.starts += 1;
                let message = json!(text);
                let at = self.last();
                Some(vec![Bytes::from(format!(
                    r#"{{"progressToken":{token},"progress":{at},"message":{message}}}"#
                ))])
            }
            Progress::Forwarded(params) => {
                let text = String::from_utf8_lossy(&params);
                let object = Object::parse(&text)?;
                let at: f64 = object.value("progress")?.get().parse().ok()?;
                if self.starts > 0 && at <= self.last() {
                    return None;
                }
                let mut splice = Splice::new(params.clone());
                splice.replace(object.place("progressToken")?, token.to_owned());
                Some(splice.into_parts())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_start_stay_below_what_a_dependency_counts() {
        let mut told = Told::default();
        let mut tell = |progress| {
            told.params("\"t\"", progress)
                .map(|parts| String::from_utf8(parts.concat()).unwrap())
        };
        let forwarded = |text: &str| Progress::Forwarded(Bytes::from(text.to_owned()));
        assert_eq!(
            tell(Progress::Start("installing".to_owned())).unwrap(),
            r#"{"progressToken":"t","progress":0.001,"message":"installing"}"#
        );
        assert_eq!(tell(forwarded(r#"{"progressToken":7,"progress":0}"#)), None);
        assert_eq!(
            tell(forwarded(
                r#"{"progressToken":7, "progress":1.0,"total":2,"x":[1]}"#
            ))
            .unwrap(),
            r#"{"progressToken":"t", "progress":1.0,"total":2,"x":[1]}"#
        );
    }
}
