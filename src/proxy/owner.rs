//! The owner of a URI: the server that has it, and the URI under which a client sees it. Pure.
//!
//! A URI is kept as it is where one server alone has it; where several do, each is seen as `pml://SERVER/URI`. All
//! templates are matched in one pass over the servers, within a bound on its work.

use std::collections::HashMap;

use super::template::{self, Effort};
use crate::config::nearest;
use crate::protocol::DependencyName;

/// What a URI begins with that names its server.
const EXPLICIT: &str = "pml://";

/// How much work the templates of all servers may cost for one URI, in bytes that are looked at: a few milliseconds
/// on the one thread that serves every request. Servers with many templates for one usual URI need a hundredth of it.
///
/// What a server lists (templates, their parts) and what a client sends (the length of a URI) are bounded each; their
/// product is not.
const WORK: usize = 1 << 20;

/// What it costs to ask the rules about a byte of a template: they judge it in several spellings.
const JUDGING: usize = 64;

/// The resources of one server, as far as they are known, those that a rule denies included.
pub(super) struct ServerResources<'a> {
    pub(super) server: &'a DependencyName,
    pub(super) stock: ResourcePresence,
    pub(super) uris: Vec<&'a str>,
    pub(super) templates: Vec<&'a str>,
    /// Tells whether a client may see a URI or a template; asked only for what fits, because it costs far more.
    pub(super) permits: &'a dyn Fn(&DependencyName, &str) -> bool,
}

impl ServerResources<'_> {
    fn lists(&self, uri: &str) -> bool {
        self.uris.contains(&uri) && (self.permits)(self.server, uri)
    }

    fn matches(&self, uri: &str, effort: &mut Effort) -> bool {
        self.templates.iter().any(|template| {
            template::fits(template, uri, effort)
                && effort.spend(JUDGING * (template.len() + 1))
                && (self.permits)(self.server, template)
        })
    }
}

/// Whether a server has resources at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourcePresence {
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

/// Returns a URI or a template with the name of its server, under which it is always found again.
pub(super) fn explicit(server: &DependencyName, uri: &str) -> String {
    format!("{EXPLICIT}{server}/{uri}")
}

/// Finds the server that a URI belongs to and the URI as that server knows it; else the nearest that is listed.
pub(super) fn owner(
    shelves: &[ServerResources<'_>],
    uri: &str,
) -> Result<(DependencyName, String), Option<String>> {
    if let Some((server, original)) = uri.strip_prefix(EXPLICIT).and_then(|rest| rest.split_once('/'))
        && let Some(shelf) = shelves.iter().find(|shelf| shelf.server.as_str() == server)
    {
        return Ok((shelf.server.clone(), original.to_owned()));
    }
    let stocked = |stock: ResourcePresence| shelves.iter().filter(move |shelf| shelf.stock == stock);
    let listing: Vec<&ServerResources<'_>> = shelves.iter().filter(|shelf| shelf.lists(uri)).collect();
    // Of what is listed no template has to be tried.
    let matching = if listing.is_empty() {
        matching(shelves, uri)
    } else {
        Vec::new()
    };
    let shelf = match (&listing[..], &matching[..]) {
        ([only], _) | ([], [only]) => Some(*only),
        // Several have it.
        ([_, ..], _) | (_, [_, ..]) => None,
        ([], []) => only(stocked(ResourcePresence::Some)).or_else(|| {
            let none_has_any = stocked(ResourcePresence::Some).next().is_none();
            only(stocked(ResourcePresence::Unknown)).filter(|_| none_has_any)
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
pub(super) fn possible_owners(shelves: &[ServerResources<'_>], uri: &str) -> Vec<DependencyName> {
    if uri.starts_with(EXPLICIT) || shelves.iter().any(|shelf| shelf.lists(uri)) {
        return Vec::new();
    }
    let mut possible = matching(shelves, uri);
    if possible.is_empty() {
        possible.extend(
            shelves
                .iter()
                .filter(|shelf| shelf.stock == ResourcePresence::Some),
        );
    }
    possible.into_iter().map(|shelf| shelf.server.clone()).collect()
}

/// Returns the servers with a template that fits.
///
/// Each has the same share of the work, so that the templates of one cannot hide those of another; what is left of a
/// server's templates when its share is used up does not fit.
fn matching<'s, 'a>(shelves: &'s [ServerResources<'a>], uri: &str) -> Vec<&'s ServerResources<'a>> {
    let with_templates = shelves.iter().filter(|shelf| !shelf.templates.is_empty());
    let share = WORK / with_templates.clone().count().max(1);
    with_templates
        .filter(|shelf| shelf.matches(uri, &mut Effort::new(share)))
        .collect()
}

fn nearest_to(shelves: &[ServerResources<'_>], uri: &str) -> Option<String> {
    // A URI that several servers have is nearer than any other.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::assert_linear;
    use proptest::prelude::*;

    #[test]
    fn lists_are_searched_in_linear_time() {
        let name: DependencyName = "a".parse().unwrap();
        let listed =
            |size: usize| -> Vec<String> { (0..size / 8).map(|number| format!("x:{number}")).collect() };
        assert_linear("many listed", listed, |uris| {
            let shelves = [ServerResources {
                server: &name,
                stock: ResourcePresence::Unknown,
                uris: uris.iter().map(String::as_str).collect(),
                templates: uris.iter().map(String::as_str).collect(),
                permits: &|_, _| true,
            }];
            assert!(owner(&shelves, "y:unknown").is_ok());
            assert_eq!(nearest_to(&shelves, &"y".repeat(5000)), None);
            assert_eq!(possible_owners(&shelves, "y:unknown"), []);
        });
    }

    /// The most that servers may list, and a URI that each of their templates nearly fits.
    struct Largest {
        servers: usize,
        templates: usize,
        parts: usize,
        uri: usize,
    }

    /// Returns the most with one of them of another size.
    type Along = fn(&Largest, usize) -> Largest;

    /// Looks a URI up among templates that only the whole match tells from it.
    fn look_up(largest: &Largest) {
        let names: Vec<DependencyName> = (0..largest.servers)
            .map(|number| format!("s{number}").parse().unwrap())
            .collect();
        let template = format!("a:{}{{x}}b", "{+x}a".repeat(largest.parts));
        let shelves: Vec<ServerResources<'_>> = names
            .iter()
            .map(|server| ServerResources {
                server,
                stock: ResourcePresence::Some,
                uris: Vec::new(),
                templates: vec![&template; largest.templates],
                permits: &|_, _| false,
            })
            .collect();
        let uri = format!("a:{}/b", "a".repeat(largest.uri));
        drop(owner(&shelves, &uri));
        possible_owners(&shelves, &uri);
    }

    #[test]
    fn the_product_of_servers_templates_parts_and_length_is_bounded() {
        let usual = Largest {
            servers: 4,
            templates: 1000,
            parts: 31,
            uri: 8000,
        };
        let axes: [(&str, Along); 4] = [
            ("servers", |all, size| Largest {
                servers: size / 512,
                ..*all
            }),
            ("templates", |all, size| Largest {
                templates: size / 8,
                ..*all
            }),
            ("parts", |all, size| Largest {
                parts: size / 64,
                ..*all
            }),
            ("uri", |all, size| Largest { uri: size, ..*all }),
        ];
        for (axis, along) in axes {
            assert_linear(axis, |size| along(&usual, size.min(1 << 16)), look_up);
        }
        assert_linear(
            "all at once",
            |size| Largest {
                servers: size / 512,
                templates: size / 32,
                parts: (size / 512).min(32),
                uri: size.min(8192),
            },
            look_up,
        );
    }

    #[test]
    fn templates_that_use_up_the_work_hide_no_template_of_another_server() {
        let names: Vec<DependencyName> = ["a", "b"].map(|name| name.parse().unwrap()).to_vec();
        let slow = format!("a:{}{{x}}b", "{+x}a".repeat(31));
        let uri = format!("a:{}/b", "a".repeat(8000));
        let shelf = |server, templates| ServerResources {
            server,
            stock: ResourcePresence::Some,
            uris: Vec::new(),
            templates,
            permits: &|_, _| true,
        };
        let shelves = [
            shelf(&names[0], vec![&*slow; 1000]),
            shelf(&names[1], vec!["a:{+all}"]),
        ];
        assert_eq!(owner(&shelves, &uri), Ok((names[1].clone(), uri.clone())));
        let hidden = [
            shelf(&names[0], [vec![&*slow; 1000], vec!["a:{+all}"]].concat()),
            shelf(&names[1], Vec::new()),
        ];
        assert_eq!(
            possible_owners(&hidden, &uri),
            names,
            "it goes the way of what none lists"
        );
    }

    /// Shelves by name: URIs, templates, and whether there is anything at all.
    struct Shop(
        Vec<(
            DependencyName,
            Vec<&'static str>,
            Vec<&'static str>,
            ResourcePresence,
        )>,
    );

    impl Shop {
        fn new(shelves: &[(&str, &[&'static str], &[&'static str], ResourcePresence)]) -> Self {
            let shelf = |(name, uris, templates, stock): &(
                &str,
                &[&'static str],
                &[&'static str],
                ResourcePresence,
            )| { (name.parse().unwrap(), uris.to_vec(), templates.to_vec(), *stock) };
            Self(shelves.iter().map(shelf).collect())
        }

        fn owner(&self, uri: &str) -> Result<(String, String), Option<String>> {
            let shelves: Vec<ServerResources<'_>> = self
                .0
                .iter()
                .map(|(server, uris, templates, stock)| ServerResources {
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
            (
                "a",
                &["x:1", "x:both"],
                &["x:a/{id}", "x:same/{id}"],
                ResourcePresence::Some,
            ),
            (
                "b",
                &["x:2", "x:both", "x:a/7"],
                &["x:b/{id}", "x:same/{id}"],
                ResourcePresence::Some,
            ),
            ("c", &[], &[], ResourcePresence::None),
            ("d", &[], &[], ResourcePresence::Unknown),
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
            ("a", &["x:1"], &[], ResourcePresence::Some),
            ("b", &[], &[], ResourcePresence::None),
            ("c", &[], &[], ResourcePresence::Unknown),
        ]);
        assert_eq!(one.owner("y:7"), Ok(of("a", "y:7")));
        let unseen = Shop::new(&[
            ("a", &[], &[], ResourcePresence::None),
            ("b", &[], &[], ResourcePresence::Unknown),
        ]);
        assert_eq!(unseen.owner("y:7"), Ok(of("b", "y:7")));
        let none = Shop::new(&[("a", &[], &[], ResourcePresence::None)]);
        assert_eq!(none.owner("y:7"), Err(None));
        assert_eq!(none.owner("pml://gone/y:7"), Err(None));
    }

    #[test]
    fn whose_it_may_be_is_for_those_whose_template_fits_and_else_for_all_that_have_any() {
        let names: Vec<DependencyName> = ["a", "b", "c"].map(|name| name.parse().unwrap()).to_vec();
        let shelf =
            |place: usize, uris: &[&'static str], templates: &[&'static str], stock| ServerResources {
                server: &names[place],
                stock,
                uris: uris.to_vec(),
                templates: templates.to_vec(),
                permits: &|_, _| true,
            };
        let shelves = [
            shelf(0, &["x:both"], &["x:same/{id}"], ResourcePresence::Some),
            shelf(1, &["x:both"], &["x:same/{id}"], ResourcePresence::Some),
            shelf(2, &[], &[], ResourcePresence::Unknown),
        ];
        assert_eq!(possible_owners(&shelves, "y:7"), names[..2]);
        assert_eq!(possible_owners(&shelves, "x:same/1"), names[..2]);
        assert_eq!(possible_owners(&shelves, "x:both"), []);
        assert_eq!(possible_owners(&shelves, "pml://gone/y:7"), []);
        assert_eq!(
            possible_owners(
                &[
                    shelf(0, &[], &["x:{id}"], ResourcePresence::Some),
                    shelf(1, &[], &[], ResourcePresence::Some)
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
            let shelves: Vec<ServerResources<'_>> = names.iter().zip(lists).map(|(server, uris)| ServerResources {
                server,
                stock: ResourcePresence::Some,
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
    }
}
