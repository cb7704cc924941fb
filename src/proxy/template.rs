//! Templates of resources, matched and never expanded: their expressions are holes between literals. Pure.
//!
//! A match takes the length of the URI for each part of the template, however many holes a server invents; the
//! [`Effort`] bounds what many templates cost together.

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
enum TemplatePart<'a> {
    Literal(&'a str),
    /// Something that is filled in.
    Hole {
        /// What it begins with, if anything is filled in at all; without it, something must be.
        lead: Option<u8>,
        reach: Reach,
    },
}

/// How far a hole reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// To the next `/`.
    Segment,
    /// As far as it likes.
    Anywhere,
}

/// How much work is left for one lookup, in bytes that are looked at.
#[derive(Debug)]
pub(super) struct Effort(usize);

impl Effort {
    pub(super) fn new(work: usize) -> Self {
        Self(work)
    }

    /// Takes work out of what is left; where that is less, nothing is left any more.
    pub(super) fn spend(&mut self, work: usize) -> bool {
        let left = self.0.checked_sub(work);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Tells whether a URI may come from an RFC 6570 template; no, if the effort does not suffice to find out.
pub(super) fn fits(template: &str, uri: &str, effort: &mut Effort) -> bool {
    // Nearly all are told apart by how they begin or end.
    if !effort.spend(1 + template.len() / 16) || !has_ends(template, uri) {
        return false;
    }
    if !effort.spend(template.len() + uri.len()) {
        return false;
    }
    let parts = parts(template);
    effort.spend(parts.len() * (uri.len() + 1)) && may_fit(&parts, uri) && is_match(&parts, uri.as_bytes())
}

/// Tells whether a URI begins and ends with what stands before and behind all expressions of a template.
fn has_ends(template: &str, uri: &str) -> bool {
    let head = template.split('{').next().unwrap_or_default();
    let tail = template.rsplit('}').next().unwrap_or_default();
    uri.starts_with(head) && uri.ends_with(tail)
}

/// Tells whether a URI has room for all parts, and all literals in their order.
fn may_fit(parts: &[TemplatePart<'_>], uri: &str) -> bool {
    let least: usize = parts
        .iter()
        .map(|part| match part {
            TemplatePart::Literal(literal) => literal.len(),
            TemplatePart::Hole { lead, .. } => usize::from(lead.is_none()),
        })
        .sum();
    let mut rest = uri;
    uri.len() >= least
        && parts.iter().all(|part| match part {
            TemplatePart::Hole { .. } => true,
            TemplatePart::Literal(literal) => match rest.split_once(literal) {
                Some((_, behind)) => {
                    rest = behind;
                    true
                }
                None => false,
            },
        })
}

/// Tells whether the parts can be laid over the whole text; each costs the length of the text.
fn is_match(parts: &[TemplatePart<'_>], text: &[u8]) -> bool {
    // Where in the URI the parts so far may end.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for part in parts {
        ends = match part {
            TemplatePart::Literal(literal) => after_literal(&ends, text, literal.as_bytes()),
            TemplatePart::Hole { lead, reach } => after_hole(&ends, text, *lead, *reach),
        };
        if !ends.contains(&true) {
            return false;
        }
    }
    ends[text.len()]
}

fn after_literal(ends: &[bool], text: &[u8], literal: &[u8]) -> Vec<bool> {
    let mut after = vec![false; ends.len()];
    // Each byte of the URI is looked at once: compared anew at each place, a literal of equal letters would cost its
    // length there.
    let borders = borders(literal);
    let mut fitting = 0;
    for (place, byte) in text.iter().enumerate() {
        while fitting > 0 && (fitting == literal.len() || literal[fitting] != *byte) {
            fitting = borders[fitting - 1];
        }
        if literal[fitting] == *byte {
            fitting += 1;
        }
        let end = place + 1;
        if fitting == literal.len() {
            after[end] = ends[end - literal.len()];
        }
    }
    after
}

/// Returns for each beginning of a literal the length of its longest proper beginning that it also ends with.
fn borders(literal: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; literal.len()];
    for place in 1..literal.len() {
        let mut length = borders[place - 1];
        while length > 0 && literal[length] != literal[place] {
            length = borders[length - 1];
        }
        borders[place] = length + usize::from(literal[length] == literal[place]);
    }
    borders
}

fn after_hole(ends: &[bool], text: &[u8], lead: Option<u8>, reach: Reach) -> Vec<bool> {
    // What has a lead may be absent altogether.
    let mut after = match lead {
        Some(_) => ends.to_vec(),
        None => vec![false; ends.len()],
    };
    let mut filling = false;
    for (place, byte) in text.iter().enumerate() {
        filling = match lead {
            None => (filling || ends[place]) && (reach == Reach::Anywhere || *byte != b'/'),
            // The lead itself may be what a segment ends at.
            Some(lead) => {
                (ends[place] && *byte == lead) || (filling && (reach == Reach::Anywhere || *byte != b'/'))
            }
        };
        after[place + 1] |= filling;
    }
    after
}

fn parts(template: &str) -> Vec<TemplatePart<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, (expression, behind))) = rest
        .split_once('{')
        .and_then(|(literal, behind)| Some((literal, behind.split_once('}')?)))
    {
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        parts.push(hole(expression));
        rest = behind;
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Literal(rest));
    }
    parts
}

fn hole(expression: &str) -> TemplatePart<'static> {
    let (lead, reach) = match expression.as_bytes().first() {
        Some(b'+') => (None, Reach::Anywhere),
        Some(b'#') => (Some(b'#'), Reach::Anywhere),
        Some(b'?') => (Some(b'?'), Reach::Anywhere),
        Some(b'&') => (Some(b'&'), Reach::Anywhere),
        // Each of several begins with the slash.
        Some(b'/') if expression.contains(['*', ',']) => (Some(b'/'), Reach::Anywhere),
        Some(b'/') => (Some(b'/'), Reach::Segment),
        Some(b'.') => (Some(b'.'), Reach::Segment),
        Some(b';') => (Some(b';'), Reach::Segment),
        _ => (None, Reach::Segment),
    };
    TemplatePart::Hole { lead, reach }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{InputShape, assert_linear};
    use proptest::prelude::*;

    /// Matches without a bound.
    fn fit(template: &str, uri: &str) -> bool {
        fits(template, uri, &mut Effort::new(usize::MAX))
    }

    #[test]
    fn templates_are_literals_with_holes() {
        for (template, fitting, unfit) in [
            (
                "file:///{name}",
                vec!["file:///a", "file:///ä b"],
                vec!["file:///", "file:///a/b", "file:/a"],
            ),
            (
                "file:///{+path}",
                vec!["file:///a", "file:///a/b/c"],
                vec!["file://a"],
            ),
            (
                "db://{table}/rows/{id}",
                vec!["db://a/rows/1"],
                vec!["db://a/b/rows/1", "db://a/rows/", "db://a/rows/1/2"],
            ),
            ("r:{/path*}", vec!["r:", "r:/a", "r:/a/b"], vec!["r:a"]),
            ("r:{/one}", vec!["r:", "r:/a", "r:/"], vec!["r:/a/b", "r:a"]),
            (
                "s:x{?q,page}",
                vec!["s:x", "s:x?q=1&page=2", "s:x?q=a/b"],
                vec!["s:xy", "s:"],
            ),
            ("s:x{?q}{&r}{#f}", vec!["s:x?q=1&r=2#f"], vec!["s:xr=2"]),
            ("a:{x}{y}", vec!["a:12"], vec!["a:1", "a:"]),
            ("a:b", vec!["a:b"], vec!["a:bc", "a:"]),
            ("a:{unclosed", vec!["a:{unclosed"], vec!["a:x"]),
            ("{+all}", vec!["any://thing/at?all"], vec![""]),
        ] {
            for uri in fitting {
                assert!(fit(template, uri), "{template} fits {uri}");
            }
            for uri in unfit {
                assert!(!fit(template, uri), "{template} does not fit {uri}");
            }
        }
    }

    #[test]
    fn a_thousand_holes_cost_no_more_than_a_thousand_looks() {
        let template = "{a}".repeat(1000);
        assert!(fit(&template, &"x".repeat(2000)));
        assert!(!fit(&template, &"x".repeat(999)));
        assert!(!fit(&(template + "!"), &"x".repeat(2000)));
    }

    #[test]
    fn a_match_is_linear_in_the_uri() {
        let shapes: [InputShape<(String, String)>; 5] = [
            ("equal letters", |size| {
                (format!("{{+x}}{}{{y}}", "a".repeat(size / 2)), "a".repeat(size))
            }),
            ("many equal literals", |size| {
                ("{+x}ab{y}ab".repeat(4), "ab".repeat(size / 2))
            }),
            ("holes that reach anywhere", |size| {
                ("{+x}".repeat(32), "/".repeat(size))
            }),
            ("braces without an end", |size| {
                ("{".repeat(size), "{".repeat(size))
            }),
            ("segments", |size| ("{x}/{/y*}".repeat(16), "a/".repeat(size / 2))),
        ];
        for (shape, input) in shapes {
            assert_linear(shape, input, |(template, uri)| {
                fit(template, uri);
            });
        }
    }

    #[test]
    fn what_the_effort_does_not_suffice_for_does_not_fit() {
        let mut effort = Effort::new(100);
        assert!(fits("a:{x}", "a:1", &mut effort));
        assert!(!fits("a:{x}", &format!("a:{}", "1".repeat(100)), &mut effort));
        assert!(!fits("a:{x}", "a:1", &mut effort), "nothing is left");
    }

    proptest! {
        /// What is told apart early is what would not have matched.
        #[test]
        fn early_rejection_changes_nothing(template in "[ab/{}+x.]{0,12}", uri in "[ab/x.]{0,8}") {
            prop_assert_eq!(fit(&template, &uri), is_match(&parts(&template), uri.as_bytes()));
        }

        #[test]
        fn a_literal_is_found_at_every_place(text in "[ab]{0,24}", literal in "[ab]{1,6}") {
            let ends = vec![true; text.len() + 1];
            let after = after_literal(&ends, text.as_bytes(), literal.as_bytes());
            for (end, found) in after.iter().enumerate() {
                prop_assert_eq!(*found, text[..end].ends_with(&literal), "{}", end);
            }
        }

        #[test]
        fn what_fills_the_holes_fits(one in "[a-z]{1,4}", two in "[a-z/]{1,4}") {
            prop_assert!(fit("t://{one}/{+two}", &format!("t://{one}/{two}")), "{} {}", one, two);
        }
    }
}
