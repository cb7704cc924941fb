//! Progress on its way to the client: its own token, values that rise.

use bytes::Bytes;
use serde_json::json;

use crate::protocol::{Payload, Splice};

/// What was reported of a call so far: progress must rise.
#[derive(Debug, Default)]
pub(crate) struct ProgressReport {
    steps: OwnSteps,
    /// The highest value that was reported.
    last: f64,
}

/// Whether pml reported steps of its own: what a dependency counts passes as it is where it did not.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum OwnSteps {
    #[default]
    None,
    Some,
}

impl ProgressReport {
    /// Returns the parameters that tell of a step of pml's own; `None` where the value could not rise.
    ///
    /// Such steps are thousandths, so that what the dependency counts comes out above them.
    pub(crate) fn step(&mut self, token: &str, text: &str) -> Option<String> {
        let at = ((self.last * 1000.0).round() + 1.0) / 1000.0;
        if !at.is_finite() || at <= self.last {
            return None;
        }
        self.steps = OwnSteps::Some;
        self.last = at;
        let message = json!(text);
        Some(format!(
            r#"{{"progressToken":{token},"progress":{at},"message":{message}}}"#
        ))
    }

    /// Returns the parameters of a dependency's notification for the client; `None` where the value would not rise.
    pub(crate) fn forwarded(
        &mut self,
        token: &str,
        line: &Bytes,
        params: &Payload<'_>,
    ) -> Option<Vec<Bytes>> {
        let object = params.object()?;
        let at: Option<f64> = object
            .value("progress")
            .and_then(|value| value.get().parse().ok());
        if self.steps == OwnSteps::Some && at? <= self.last {
            return None;
        }
        self.last = self.last.max(at.unwrap_or_default());
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
        let forwarded = |report: &mut ProgressReport, text: &'static str| {
            let line = Bytes::from_static(text.as_bytes());
            let params = Payload::parse(text).unwrap();
            report
                .forwarded("\"t\"", &line, &params)
                .map(|parts| String::from_utf8(parts.concat()).unwrap())
        };
        let mut report = ProgressReport::default();
        assert_eq!(
            forwarded(&mut report, r#"{"progressToken":7,"progress":0}"#).unwrap(),
            r#"{"progressToken":"t","progress":0}"#
        );
        assert_eq!(
            report.step("\"t\"", "installing").unwrap(),
            r#"{"progressToken":"t","progress":0.001,"message":"installing"}"#
        );
        assert_eq!(
            forwarded(&mut report, r#"{"progressToken":7,"progress":0}"#),
            None
        );
        assert_eq!(
            forwarded(
                &mut report,
                r#"{"progressToken":7, "progress":1.0,"total":2,"x":[1]}"#
            )
            .unwrap(),
            r#"{"progressToken":"t", "progress":1.0,"total":2,"x":[1]}"#
        );
    }

    #[test]
    fn steps_after_what_a_dependency_counted_rise_above_it() {
        let mut report = ProgressReport::default();
        let counted = |report: &mut ProgressReport, at: &str| {
            let text = format!(r#"{{"progressToken":7,"progress":{at}}}"#);
            let line = Bytes::from(text.clone());
            let params = Payload::parse(std::str::from_utf8(&line).unwrap()).unwrap();
            report.forwarded("1", &line, &params).is_some()
        };
        let step = |report: &mut ProgressReport| {
            let params = report.step("1", "waiting")?;
            let params: serde_json::Value = serde_json::from_str(&params).unwrap();
            params["progress"].as_f64()
        };
        assert!(counted(&mut report, "3"));
        assert!(
            counted(&mut report, "1"),
            "what only the dependency counts is its own"
        );
        let steps: Vec<f64> = (0..3).filter_map(|_| step(&mut report)).collect();
        assert_eq!(steps, [3.001, 3.002, 3.003]);
        assert!(!counted(&mut report, "3.001"));
        assert!(counted(&mut report, "4"));
        assert_eq!(step(&mut report), Some(4.001));
        assert!(counted(&mut report, "1e300"));
        assert_eq!(step(&mut report), None);
    }
}
