use std::ffi::OsStr;

use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::clients::{Scope, client, own_entry, place_of, renewed_entry, translate};
use crate::config::expand;

/// A home in which clients keep servers, and what imports made of it.
struct Home {
    root: tempfile::TempDir,
    shell: Environment,
    entries: BTreeMap<DependencyName, Map<String, Value>>,
    journals: Vec<BTreeMap<String, Digest>>,
    /// Each declared server, the client it came from, and the value that it had there.
    servers: Vec<(DependencyName, &'static str, Option<String>)>,
}

/// The variable that every server of these tests gets.
const VARIABLE: &str = "API_KEY";

/// What a server has for the variable.
#[derive(Debug, Clone)]
enum Given {
    Clear(String),
    /// Among the words of its command, as `docker run` takes it.
    InWord(String),
    /// In the query of its address.
    InQuery(String),
    OfTheShell,
}

/// Clients that differ in how they refer to variables and hand them on.
const CLIENTS: [&str; 6] = [
    "cursor",
    "windsurf",
    "claude-desktop",
    "codex",
    "opencode",
    "gemini",
];

#[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

impl Home {
    fn new(of_the_shell: Option<&str>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().to_str().unwrap().to_owned();
        let variables = [("HOME", Some(home.as_str())), (VARIABLE, of_the_shell)];
        let variables = variables
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        Self {
            shell: Environment::new(variables, root.path()),
            root,
            entries: BTreeMap::new(),
            journals: Vec::new(),
            servers: Vec::new(),
        }
    }

    fn file(&self, id: &str) -> ClientFile {
        let place = place_of(client(id).unwrap(), Scope::User, &self.shell, self.root.path());
        ClientFile::read(place.unwrap()).unwrap()
    }

    fn files(&self) -> Vec<ClientFile> {
        CLIENTS.iter().map(|id| self.file(id)).collect()
    }

    /// Writes servers into their clients, as a person would beside what stands there.
    fn add(&self, servers: &[(&'static str, String, Given)]) {
        for (id, name, given) in servers {
            let file = self.file(id);
            let own = match (*id, given) {
                (_, Given::Clear(value)) => json!({ VARIABLE: value }),
                ("opencode", Given::OfTheShell) => json!({ VARIABLE: format!("{{env:{VARIABLE}}}") }),
                ("cursor" | "windsurf", Given::OfTheShell) => {
                    json!({ VARIABLE: format!("${{env:{VARIABLE}}}") })
                }
                ("gemini", Given::OfTheShell) => json!({ VARIABLE: format!("${VARIABLE}") }),
                (_, Given::OfTheShell | Given::InWord(_) | Given::InQuery(_)) => json!({}),
            };
            let query = |key: &str| format!("https://e.example/mcp?mode=all&api_key={key}");
            let entry = match *id {
                "opencode" if let Given::InWord(value) = given => {
                    json!({ "type": "local", "command": ["program", "-e", format!("{VARIABLE}={value}")] })
                }
                "opencode" if let Given::InQuery(value) = given => {
                    json!({ "type": "remote", "url": query(value) })
                }
                "windsurf" if let Given::InQuery(value) = given => json!({ "serverUrl": query(value) }),
                _ if let Given::InQuery(value) = given => json!({ "url": query(value) }),
                _ if let Given::InWord(value) = given => {
                    json!({ "command": "program", "args": ["-e", format!("{VARIABLE}={value}")] })
                }
                "opencode" => json!({ "type": "local", "command": ["program"], "environment": own }),
                "codex" if matches!(given, Given::OfTheShell) => {
                    json!({ "command": "program", "env_vars": [VARIABLE] })
                }
                _ => json!({ "command": "program", "env": own }),
            };
            let edit = file.edited(&[], Some((name, &entry))).unwrap();
            write(&file.path, &edit.after);
        }
    }

    /// Imports everything.
    fn import(&mut self) {
        let (shell, root) = (self.shell.clone(), self.root.path().to_owned());
        let files = self.files();
        let mut declarations = Declarations::new(&shell, &self.journals, &files, self.entries.clone(), &root);
        let mut found = Vec::new();
        for file in &files {
            for server in file.others() {
                let translation = translate(file.place.client, server, Scope::User, &root).unwrap();
                declarations.reserve(&file.path, &translation);
                found.push((file, server, translation));
            }
        }
        let mut handed: BTreeMap<&str, Vec<NeededVariable>> = BTreeMap::new();
        let mut removed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (file, server, mut translation) in found {
            let id = file.place.client.id;
            let value = translation
                .variables
                .first()
                .and_then(|variable| match &variable.handover {
                    crate::clients::Handover::Value(value) => Some(value.clone()),
                    _ => shell
                        .variable(VARIABLE)
                        .map(|value| value.to_str().unwrap().to_owned()),
                });
            // A name that comes from the environment and is another value's already keeps its server where it is.
            let Ok(settled) = declarations.settle(file, server, &mut translation) else {
                continue;
            };
            let (name, variables) = match settled {
                Settled::Same(name, variables) => (name, variables),
                Settled::New(new) => {
                    self.entries.insert(new.name.clone(), translation.entry.clone());
                    (new.name, translation.variables)
                }
            };
            let wants_any = self.declared(&name).is_some();
            self.servers.push((name, id, value.filter(|_| wants_any)));
            handed.entry(id).or_default().extend(variables);
            removed.entry(id).or_default().push(server.name.clone());
        }
        self.journals.push(declarations.handed());
        for file in &files {
            let id = file.place.client.id;
            let Some(removed) = removed.remove(id) else {
                continue;
            };
            let own = own_entry(
                file.place.client,
                Path::new("/b/pml"),
                &handed.remove(id).unwrap_or_default(),
                None,
            );
            let own = match file.registration() {
                Some(standing) => renewed_entry(&standing.entry, &own).unwrap(),
                None => own,
            };
            let edit = file.edited(&removed, Some(("pml", &own))).unwrap();
            write(&file.path, &edit.after);
        }
    }

    /// Returns the environment that pml has where a client starts it.
    fn of_pml(&self, id: &str) -> Environment {
        let file = self.file(id);
        let Some(own) = file.registration() else {
            return Environment::new([("HOME", "/")], "/");
        };
        let mut variables = if id == "opencode" {
            self.shell.clone()
        } else {
            Environment::new([("HOME", "/")], "/")
        };
        for name in own
            .entry
            .get("env_vars")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = name.as_str().unwrap();
            if let Some(value) = self.shell.variable(name) {
                variables = variables.with(name, value);
            }
        }
        let given = own.entry.get("env").or_else(|| own.entry.get("environment"));
        for (name, text) in given.and_then(Value::as_object).into_iter().flatten() {
            let text = text.as_str().unwrap();
            let of_the_shell = text.contains(VARIABLE);
            let value = if of_the_shell {
                self.shell.variable(VARIABLE)
            } else {
                Some(OsStr::new(text))
            };
            if let Some(value) = value {
                variables = variables.with(name, value);
            }
        }
        variables
    }

    /// Returns what is declared of a server where its key stands, without what stands before the key.
    fn declared(&self, name: &DependencyName) -> Option<String> {
        let entry = &self.entries[name];
        let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
        let variable = text(entry.get("env").and_then(|env| env.get(VARIABLE)));
        let word = text(entry.get("args").and_then(|args| args.get(1)));
        let address = text(entry.get("url"));
        let word = word.and_then(|word| Some(word.strip_prefix("API_KEY=")?.to_owned()));
        let address = address.and_then(|address| Some(address.split_once("api_key=")?.1.to_owned()));
        variable.or(word).or(address)
    }

    /// Returns what a declared server gets where a client starts pml.
    fn received(&self, name: &DependencyName, id: &str) -> Option<String> {
        let declared = self.declared(name)?;
        expand(&declared, &self.of_pml(id))
            .ok()
            .map(|expanded| expanded.text)
    }

    fn assert_each_gets_its_own(&self) {
        for (name, own_client, value) in &self.servers {
            for id in CLIENTS {
                let received = self.received(name, id);
                if id == *own_client {
                    assert_eq!(
                        received, *value,
                        "`{name}` in {id}, which it came from: {:?}",
                        self.entries
                    );
                } else if received.is_some() {
                    assert_eq!(received, *value, "`{name}` in {id}: {:?}", self.entries);
                }
            }
        }
    }
}

fn clear(id: &'static str, name: &str, value: &str) -> (&'static str, String, Given) {
    (id, name.to_owned(), Given::Clear(value.to_owned()))
}

#[test]
fn two_servers_of_one_file_keep_their_own_values() {
    let mut home = Home::new(None);
    home.add(&[clear("cursor", "one", "k-1"), clear("cursor", "two", "k-2")]);
    home.import();
    home.assert_each_gets_its_own();
    let two: DependencyName = "two".parse().unwrap();
    assert_eq!(home.entries[&two]["env"], json!({ "API_KEY": "${TWO_API_KEY}" }));
}

#[test]
fn keys_among_words_and_in_addresses_are_values_like_any_other() {
    let mut home = Home::new(None);
    let given = |name: &str, given| ("cursor", name.to_owned(), given);
    home.add(&[
        clear("cursor", "one", "k-1"),
        given("two", Given::InWord("k-2".to_owned())),
        given("three", Given::InWord("k-1".to_owned())),
        given("four", Given::InQuery("k-4".to_owned())),
    ]);
    home.import();
    home.assert_each_gets_its_own();
    let entry = |name: &str| Value::Object(home.entries[&name.parse::<DependencyName>().unwrap()].clone());
    assert_eq!(entry("two")["args"], json!(["-e", "API_KEY=${TWO_API_KEY}"]));
    assert_eq!(entry("three")["args"], json!(["-e", "API_KEY=${API_KEY}"]));
    assert_eq!(
        entry("four")["url"],
        "https://e.example/mcp?mode=all&api_key=${FOUR_API_KEY}"
    );
}

#[test]
fn a_server_that_is_added_later_does_not_get_the_value_of_an_earlier_one() {
    let mut home = Home::new(None);
    home.add(&[clear("cursor", "one", "k-1")]);
    home.import();
    home.add(&[clear("cursor", "two", "k-2"), clear("windsurf", "three", "k-3")]);
    home.import();
    home.assert_each_gets_its_own();
}

#[test]
fn one_name_with_two_accounts_is_two_servers_and_with_one_is_one() {
    let mut home = Home::new(None);
    home.add(&[
        clear("cursor", "one", "k-1"),
        clear("windsurf", "one", "k-2"),
        clear("gemini", "one", "k-1"),
    ]);
    home.import();
    home.assert_each_gets_its_own();
    let names: Vec<_> = home.entries.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["one", "one-windsurf"]);
}

#[test]
fn what_the_shell_has_under_a_name_is_no_value_that_stood_in_a_file() {
    let mut home = Home::new(Some("of-the-shell"));
    home.add(&[
        clear("cursor", "one", "k-1"),
        clear("opencode", "two", "of-the-shell"),
    ]);
    home.import();
    home.assert_each_gets_its_own();
}

fn given() -> impl Strategy<Value = Given> {
    prop_oneof![
        3 => "k-[1-3]".prop_map(Given::Clear),
        2 => "k-[1-3]".prop_map(Given::InWord),
        2 => "k-[1-3]".prop_map(Given::InQuery),
        1 => Just(Given::OfTheShell),
    ]
}

fn servers() -> impl Strategy<Value = Vec<(&'static str, String, Given)>> {
    let one = (prop::sample::select(&CLIENTS[..]), "(one|two|three)", given());
    prop::collection::vec(one, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_servers_are_imported_in_whatever_order_each_gets_its_own_value(
        shell in prop::option::of("k-[1-2]"),
        rounds in prop::collection::vec(servers(), 1..4),
    ) {
        let mut home = Home::new(shell.as_deref());
        for round in rounds {
            home.add(&round);
            home.import();
            home.assert_each_gets_its_own();
        }
    }
}
