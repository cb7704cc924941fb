//! Progress on its way to the client: its own token, values that rise.

use bytes::Bytes;
use serde_json::json;

use crate::protocol::{Payload, Splice};

/// What was reported of a call so far: progress must rise.
#[derive(Debug, Default)]
pub(crate) struct ProgressReport {
    starts: u32,
}

impl ProgressReport {
    /// Steps of a start are thousandths, so that what the dependency counts itself comes out above them.
    fn last(&self) -> f64 {
        f64::from(self.starts) / 1000.0
    }

    /// Returns the parameters that tell of a step of pml's own.
    pub(crate) fn step(&mut self, token: &str, text: &str) -> String {
        self.starts += 1;
        let message = json!(text);
        let at = self.last();
        format!(r#"{{"progressToken":{token},"progress":{at},"message":{message}}}"#)
    }

    /// Returns the parameters of a dependency's notification for the client; `None` where the value would not rise.
    pub(crate) fn forwarded(&self, token: &str, line: &Bytes, params: &Payload<'_>) -> Option<Vec<Bytes>> {
        let object = params.object()?;
        if self.starts > 0 {
            let at: f64 = object.value("progress")?.get().parse().ok()?;
            if at <= self.last() {
                return None;
            }
        }
        let mut splice = Splice::new(line.slice_ref(params.get().as_bytes()));
        splice.replace(object.place("progressToken")?, token.to_owned());
        Some(splice.into_parts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_start_stay_below_what_a_dependency_counts() {
        let forwarded = |report: &ProgressReport, text: &'static str| {
            let line = Bytes::from_static(text.as_bytes());
            let params = Payload::parse(text).unwrap();
            report
                .forwarded("\"t\"", &line, &params)
                .map(|parts| String::from_utf8(parts.concat()).unwrap())
        };
        let mut report = ProgressReport::default();
        assert_eq!(
            forwarded(&report, r#"{"progressToken":7,"progress":0}"#).unwrap(),
            r#"{"progressToken":"t","progress":0}"#
        );
        assert_eq!(
            report.step("\"t\"", "installing"),
            r#"{"progressToken":"t","progress":0.001,"message":"installing"}"#
        );
        assert_eq!(forwarded(&report, r#"{"progressToken":7,"progress":0}"#), None);
        assert_eq!(
            forwarded(
                &report,
                r#"{"progressToken":7, "progress":1.0,"total":2,"x":[1]}"#
            )
            .unwrap(),
            r#"{"progressToken":"t", "progress":1.0,"total":2,"x":[1]}"#
        );
    }
}
