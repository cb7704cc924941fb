//! Which server a URI belongs to, and under which URI a client sees it. Pure.
//!
//! A URI is kept as it is where one server alone has it; where several do, each is seen as `pml://SERVER/URI`. A
//! template is matched, never expanded: its expressions are holes between literals, in time linear in the URI
//! however many holes a server invents.

use std::collections::HashMap;

use crate::config::nearest;
use crate::protocol::DependencyName;

/// What a URI begins with that names its server.
const EXPLICIT: &str = "pml://";

/// The resources of one server, as far as they are known, those that a rule denies included.
pub(super) struct Shelf<'a> {
    pub(super) server: &'a DependencyName,
    pub(super) stock: Stock,
    pub(super) uris: Vec<&'a str>,
    pub(super) templates: Vec<&'a str>,
    /// Tells whether a client may see a URI or a template; asked only for what fits, because it costs far more.
    pub(super) permits: &'a dyn Fn(&DependencyName, &str) -> bool,
}

impl Shelf<'_> {
    fn lists(&self, uri: &str) -> bool {
        self.uris.contains(&uri) && (self.permits)(self.server, uri)
    }

    fn matches(&self, uri: &str) -> bool {
        let mut templates = self.templates.iter();
        templates.any(|template| fits(template, uri) && (self.permits)(self.server, template))
    }
}

/// Whether a server has resources at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stock {
    /// It says so.
    Some,
    /// It does not say so.
    None,
    /// It was never seen.
    Unknown,
}

/// Returns how a client sees a URI or a template of `server`, given everything that all servers list of its kind.
pub(super) fn seen<'a>(
    server: &DependencyName,
    uri: &str,
    servers_of: &HashMap<&'a str, Vec<&'a DependencyName>>,
) -> String {
    match servers_of.get(uri) {
        Some(servers) if servers.len() > 1 => explicit(server, uri),
        // Who lists something that reads like the URI of another server is not believed.
        _ if uri.starts_with(EXPLICIT) => explicit(server, uri),
        _ => uri.to_owned(),
    }
}

/// Returns for each URI or template the servers that have it.
pub(super) fn servers_of<'a>(
    listed: impl Iterator<Item = (&'a DependencyName, &'a str)>,
) -> HashMap<&'a str, Vec<&'a DependencyName>> {
    let mut servers_of: HashMap<&str, Vec<&DependencyName>> = HashMap::new();
    for (server, uri) in listed {
        let servers = servers_of.entry(uri).or_default();
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers_of
}

fn explicit(server: &DependencyName, uri: &str) -> String {
    format!("{EXPLICIT}{server}/{uri}")
}

/// Finds the server that a URI belongs to and the URI as that server knows it; else the nearest that is listed.
pub(super) fn owner(shelves: &[Shelf<'_>], uri: &str) -> Result<(DependencyName, String), Option<String>> {
    if let Some((server, original)) = uri.strip_prefix(EXPLICIT).and_then(|rest| rest.split_once('/'))
        && let Some(shelf) = shelves.iter().find(|shelf| shelf.server.as_str() == server)
    {
        return Ok((shelf.server.clone(), original.to_owned()));
    }
    let stocked = |stock: Stock| shelves.iter().filter(move |shelf| shelf.stock == stock);
    let listing: Vec<&Shelf<'_>> = shelves.iter().filter(|shelf| shelf.lists(uri)).collect();
    // Of what is listed no template has to be tried.
    let matching: Vec<&Shelf<'_>> = shelves
        .iter()
        .filter(|shelf| listing.is_empty() && shelf.matches(uri))
        .collect();
    let shelf = match (&listing[..], &matching[..]) {
        ([only], _) | ([], [only]) => Some(*only),
        // Several have it.
        ([_, ..], _) | (_, [_, ..]) => None,
        ([], []) => only(stocked(Stock::Some)).or_else(|| {
            let none_has_any = stocked(Stock::Some).next().is_none();
            only(stocked(Stock::Unknown)).filter(|_| none_has_any)
        }),
    };
    match shelf {
        Some(shelf) => Ok((shelf.server.clone(), uri.to_owned())),
        None => Err(nearest_to(shelves, uri)),
    }
}

/// Returns the only one there is.
fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Names the servers that may have a URI whose owner is not known: those whose template fits, else all with resources.
///
/// What several list is none of them: it has a name that says whose it is.
pub(super) fn possible_owners(shelves: &[Shelf<'_>], uri: &str) -> Vec<DependencyName> {
    let named = |having: &dyn Fn(&Shelf<'_>) -> bool| -> Vec<DependencyName> {
        let having = shelves.iter().filter(|shelf| having(shelf));
        having.map(|shelf| shelf.server.clone()).collect()
    };
    if uri.starts_with(EXPLICIT) || shelves.iter().any(|shelf| shelf.lists(uri)) {
        return Vec::new();
    }
    let fitting = named(&|shelf| shelf.matches(uri));
    if fitting.is_empty() {
        named(&|shelf| shelf.stock == Stock::Some)
    } else {
        fitting
    }
}

fn nearest_to(shelves: &[Shelf<'_>], uri: &str) -> Option<String> {
    // Of what several have, any is nearer than whatever else there is.
    if let Some(first) = shelves.iter().find(|shelf| shelf.lists(uri)) {
        return Some(explicit(first.server, uri));
    }
    let listed = || {
        shelves
            .iter()
            .flat_map(|shelf| shelf.uris.iter().map(move |uri| (shelf, *uri)))
    };
    let near = nearest(uri, listed().map(|(_, uri)| uri))?;
    let mut having = listed().filter(|(_, uri)| *uri == near);
    let permitted = having.find(|(shelf, uri)| (shelf.permits)(shelf.server, uri));
    let (shelf, near) = permitted?;
    let servers_of = servers_of(listed().map(|(shelf, uri)| (shelf.server, uri)));
    Some(seen(shelf.server, near, &servers_of))
}

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
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

/// Tells whether a URI may come from an RFC 6570 template.
///
/// The time is that of the URI for each part of the template; what a server lists has a bounded number of parts.
fn fits(template: &str, uri: &str) -> bool {
    let text = uri.as_bytes();
    let literal = template.split('{').next().unwrap_or_default();
    // Nearly all are told apart by how they begin.
    if !uri.starts_with(literal) {
        return false;
    }
    // Where in the URI the parts so far may end.
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for part in parts(template) {
        ends = match part {
            Part::Literal(literal) => after_literal(&ends, text, literal.as_bytes()),
            Part::Hole { lead, reach } => after_hole(&ends, text, lead, reach),
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

fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, (expression, behind))) = rest
        .split_once('{')
        .and_then(|(literal, behind)| Some((literal, behind.split_once('}')?)))
    {
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        parts.push(hole(expression));
        rest = behind;
    }
    if !rest.is_empty() {
        parts.push(Part::Literal(rest));
    }
    parts
}

fn hole(expression: &str) -> Part<'static> {
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
    Part::Hole { lead, reach }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::{Shape, assert_linear};
    use proptest::prelude::*;

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
                assert!(fits(template, uri), "{template} fits {uri}");
            }
            for uri in unfit {
                assert!(!fits(template, uri), "{template} does not fit {uri}");
            }
        }
    }

    #[test]
    fn a_thousand_holes_cost_no_more_than_a_thousand_looks() {
        let template = "{a}".repeat(1000);
        assert!(fits(&template, &"x".repeat(2000)));
        assert!(!fits(&template, &"x".repeat(999)));
        assert!(!fits(&(template + "!"), &"x".repeat(2000)));
    }

    #[test]
    fn templates_and_lists_are_searched_in_linear_time() {
        let name: DependencyName = "a".parse().unwrap();
        let shapes: [Shape<(String, String)>; 5] = [
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
                fits(template, uri);
            });
        }
        let listed =
            |size: usize| -> Vec<String> { (0..size / 8).map(|number| format!("x:{number}")).collect() };
        assert_linear("many listed", listed, |uris| {
            let shelves = [Shelf {
                server: &name,
                stock: Stock::Unknown,
                uris: uris.iter().map(String::as_str).collect(),
                templates: uris.iter().map(String::as_str).collect(),
                permits: &|_, _| true,
            }];
            assert!(owner(&shelves, "y:unknown").is_ok());
            assert_eq!(nearest_to(&shelves, &"y".repeat(5000)), None);
            assert_eq!(possible_owners(&shelves, "y:unknown"), []);
        });
    }

    /// Shelves by name: URIs, templates, and whether there is anything at all.
    struct Shop(Vec<(DependencyName, Vec<&'static str>, Vec<&'static str>, Stock)>);

    impl Shop {
        fn new(shelves: &[(&str, &[&'static str], &[&'static str], Stock)]) -> Self {
            let shelf = |(name, uris, templates, stock): &(&str, &[&'static str], &[&'static str], Stock)| {
                (name.parse().unwrap(), uris.to_vec(), templates.to_vec(), *stock)
            };
            Self(shelves.iter().map(shelf).collect())
        }

        fn owner(&self, uri: &str) -> Result<(String, String), Option<String>> {
            let shelves: Vec<Shelf<'_>> = self
                .0
                .iter()
                .map(|(server, uris, templates, stock)| Shelf {
                    server,
                    stock: *stock,
                    uris: uris.clone(),
                    templates: templates.clone(),
                    permits: &|_, _| true,
                })
                .collect();
            owner(&shelves, uri).map(|(server, uri)| (server.to_string(), uri))
        }
    }

    fn of(server: &str, uri: &str) -> (String, String) {
        (server.to_owned(), uri.to_owned())
    }

    #[test]
    fn a_uri_goes_to_whom_it_names_then_to_who_lists_it_then_to_whose_template_fits() {
        let shop = Shop::new(&[
            ("a", &["x:1", "x:both"], &["x:a/{id}", "x:same/{id}"], Stock::Some),
            (
                "b",
                &["x:2", "x:both", "x:a/7"],
                &["x:b/{id}", "x:same/{id}"],
                Stock::Some,
            ),
            ("c", &[], &[], Stock::None),
            ("d", &[], &[], Stock::Unknown),
        ]);
        assert_eq!(shop.owner("pml://b/x:1"), Ok(of("b", "x:1")));
        assert_eq!(
            shop.owner("pml://d/anything/at/all"),
            Ok(of("d", "anything/at/all"))
        );
        assert_eq!(shop.owner("x:1"), Ok(of("a", "x:1")));
        assert_eq!(shop.owner("x:2"), Ok(of("b", "x:2")));
        assert_eq!(shop.owner("x:b/5"), Ok(of("b", "x:b/5")));
        assert_eq!(
            shop.owner("x:a/7"),
            Ok(of("b", "x:a/7")),
            "who lists it comes before whose template fits"
        );
        assert_eq!(shop.owner("x:both"), Err(Some("pml://a/x:both".to_owned())));
        assert!(
            shop.owner("x:same/1").is_err(),
            "two templates fit and neither is better"
        );
        assert!(shop.owner("x:3").is_err());
    }

    #[test]
    fn what_nobody_lists_goes_to_the_only_one_that_can_have_it() {
        let one = Shop::new(&[
            ("a", &["x:1"], &[], Stock::Some),
            ("b", &[], &[], Stock::None),
            ("c", &[], &[], Stock::Unknown),
        ]);
        assert_eq!(one.owner("y:7"), Ok(of("a", "y:7")));
        let unseen = Shop::new(&[("a", &[], &[], Stock::None), ("b", &[], &[], Stock::Unknown)]);
        assert_eq!(unseen.owner("y:7"), Ok(of("b", "y:7")));
        let none = Shop::new(&[("a", &[], &[], Stock::None)]);
        assert_eq!(none.owner("y:7"), Err(None));
        assert_eq!(none.owner("pml://gone/y:7"), Err(None));
    }

    #[test]
    fn whose_it_may_be_is_for_those_whose_template_fits_and_else_for_all_that_have_any() {
        let names: Vec<DependencyName> = ["a", "b", "c"].map(|name| name.parse().unwrap()).to_vec();
        let shelf = |place: usize, uris: &[&'static str], templates: &[&'static str], stock| Shelf {
            server: &names[place],
            stock,
            uris: uris.to_vec(),
            templates: templates.to_vec(),
            permits: &|_, _| true,
        };
        let shelves = [
            shelf(0, &["x:both"], &["x:same/{id}"], Stock::Some),
            shelf(1, &["x:both"], &["x:same/{id}"], Stock::Some),
            shelf(2, &[], &[], Stock::Unknown),
        ];
        assert_eq!(possible_owners(&shelves, "y:7"), names[..2]);
        assert_eq!(possible_owners(&shelves, "x:same/1"), names[..2]);
        assert_eq!(possible_owners(&shelves, "x:both"), []);
        assert_eq!(possible_owners(&shelves, "pml://gone/y:7"), []);
        assert_eq!(
            possible_owners(
                &[
                    shelf(0, &[], &["x:{id}"], Stock::Some),
                    shelf(1, &[], &[], Stock::Some)
                ],
                "x:1"
            ),
            names[..1]
        );
    }

    #[test]
    fn what_several_have_is_seen_with_the_name_of_its_server() {
        let names: Vec<DependencyName> = ["a", "b"].map(|name| name.parse().unwrap()).to_vec();
        let listed = [
            (&names[0], "x:1"),
            (&names[0], "x:1"),
            (&names[0], "x:both"),
            (&names[1], "x:both"),
        ];
        let servers_of = servers_of(listed.into_iter());
        assert_eq!(seen(&names[0], "x:1", &servers_of), "x:1");
        assert_eq!(seen(&names[1], "x:both", &servers_of), "pml://b/x:both");
        assert_eq!(seen(&names[0], "pml://b/x", &servers_of), "pml://a/pml://b/x");
    }

    proptest! {
        #[test]
        fn what_is_seen_is_found_again(
            first in proptest::collection::vec("[xy]:[a-c/]{0,3}", 0..6),
            second in proptest::collection::vec("[xy]:[a-c/]{0,3}", 0..6),
        ) {
            let names: Vec<DependencyName> = ["a", "b"].map(|name| name.parse().unwrap()).to_vec();
            let lists = [&first, &second];
            let shelves: Vec<Shelf<'_>> = names.iter().zip(lists).map(|(server, uris)| Shelf {
                server,
                stock: Stock::Some,
                uris: uris.iter().map(String::as_str).collect(),
                templates: vec!["x:{id}"],
                permits: &|_, _| true,
            }).collect();
            let listed = || names.iter().zip(lists).flat_map(|(server, uris)| uris.iter().map(move |uri| (server, uri.as_str())));
            let servers_of = servers_of(listed());
            for (server, uri) in listed() {
                let seen = seen(server, uri, &servers_of);
                prop_assert_eq!(owner(&shelves, &seen), Ok((server.clone(), uri.to_owned())));
            }
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
            prop_assert!(fits("t://{one}/{+two}", &format!("t://{one}/{two}")), "{} {}", one, two);
        }
    }
}
