//! Cycles among the modules of a folder.
//!
//! The modules of a folder are its nodes; one uses another where a path in any of its files leads there, also by way of
//! a name that the folder re-exports. The folder's own `mod.rs` is no node: it may use all of them, and they its items.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, sources, without_comments};

#[test]
fn no_modules_of_a_folder_use_one_another_in_a_circle() {
    let tree = Tree::read(&sources());
    let cyclic: BTreeMap<String, String> = tree
        .folders()
        .into_iter()
        .filter_map(|(folder, edges)| Some((folder, circle(&edges)?)))
        .collect();
    assert!(
        cyclic.is_empty(),
        "move what two modules share below both of them: {cyclic:#?}"
    );
}

#[test]
fn a_circle_is_found_behind_every_way_to_name_a_module() {
    let file = |path: &str, text: &str| Source {
        path: path.into(),
        text: text.to_owned(),
    };
    let circle_with = |text: &str| {
        let files = [
            file("lib.rs", "pub mod a;"),
            file(
                "a/mod.rs",
                "mod b;\nmod c;\npub use b::Thing;\nuse self::c::other;",
            ),
            file("a/b.rs", text),
            file("a/b/deep.rs", "// nothing"),
            file("a/c.rs", "use super::b::Thing;"),
        ];
        let folders = Tree::read(&files).folders();
        folders.get("a").and_then(circle)
    };
    for text in [
        "use super::c::Other;",
        "use super::{c, Thing};",
        "use crate::a::{self, c::{Other, More}};",
        "fn f() { crate::a::c::other() }",
        "use super::other;",
    ] {
        let found = circle_with(text);
        assert_eq!(
            found.as_deref(),
            Some("b -> c (src/a/b.rs:1), c -> b (src/a/c.rs:1)"),
            "{text}"
        );
    }
    for text in [
        "use super::Thing;",
        "// use super::c;",
        "#[cfg(test)]\nmod tests {\n    use super::super::c;\n}",
        "use crate::c::Elsewhere;",
    ] {
        assert_eq!(circle_with(text), None, "{text}");
    }
}

/// A module path, from the root of the crate.
type Module = Vec<String>;

/// Edges among the modules of one folder, each with the first place that makes it.
type Edges = BTreeMap<(String, String), String>;

/// The modules of the crate, tests apart.
struct Tree {
    /// The code of each module, without comments and tests, and its file.
    modules: BTreeMap<Module, (String, String)>,
    /// The paths by which a module imports or re-exports names: name to path.
    names: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Tree {
    fn read(sources: &[Source]) -> Self {
        let tests: BTreeSet<_> = sources.iter().flat_map(Source::test_modules).collect();
        let modules: BTreeMap<Module, (String, String)> = sources
            .iter()
            .filter(|source| !source.module().ancestors().any(|module| tests.contains(module)))
            .map(|source| {
                let code = without_comments(&without_tests(&source.text));
                (
                    module_path(source),
                    (code, format!("src/{}", source.path.display())),
                )
            })
            .collect();
        let mut tree = Self {
            modules,
            names: BTreeMap::new(),
        };
        tree.names = tree
            .modules
            .iter()
            .map(|(module, (code, _))| (module.clone(), tree.imports(module, code)))
            .collect();
        tree
    }

    /// Returns the names that a module brings into its scope, each with its path from the root.
    fn imports(&self, module: &Module, code: &str) -> BTreeMap<String, Module> {
        let mut names = BTreeMap::new();
        for (place, _) in code.match_indices("use ") {
            let line_start = code[..place].rfind('\n').map_or(0, |found| found + 1);
            let before = code[line_start..place].trim();
            if !(before.is_empty() || before.starts_with("pub")) {
                continue;
            }
            let rest = &code[place + 4..];
            let tree = &rest[..rest.find(';').unwrap_or(rest.len())];
            for path in expanded(tree) {
                let (path, name) = match path.split_last() {
                    Some((last, before)) if last == "self" => (before.to_vec(), before.last().cloned()),
                    Some((last, _)) => (path.clone(), Some(last.clone())),
                    None => continue,
                };
                if let (Some(path), Some(name)) = (self.absolute(module, &path), name) {
                    names.insert(name, path);
                }
            }
        }
        names
    }

    /// Turns a path as written in a module into one from the root; `None` for a path into another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut base = module.clone();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            child => {
                let mut inside = base.clone();
                inside.push(child.to_owned());
                self.modules.contains_key(&inside).then_some(())?;
            }
        }
        Some(base.into_iter().chain(rest.iter().cloned()).collect())
    }

    /// Returns the module that a path from the root leads to, names that are re-exported on the way followed.
    fn target(&self, path: &[String], depth: usize) -> Module {
        let mut module = Module::new();
        for (at, part) in path.iter().enumerate() {
            let mut inside = module.clone();
            inside.push(part.clone());
            if self.modules.contains_key(&inside) {
                module = inside;
                continue;
            }
            let imported = self.names.get(&module).and_then(|names| names.get(part));
            if let Some(imported) = imported.filter(|_| depth > 0) {
                let whole: Module = imported.iter().chain(&path[at + 1..]).cloned().collect();
                return self.target(&whole, depth - 1);
            }
            break;
        }
        module
    }

    /// Returns the edges among the modules of each folder; the root of the crate is left to the picture.
    fn folders(&self) -> BTreeMap<String, Edges> {
        let mut folders: BTreeMap<String, Edges> = BTreeMap::new();
        for (module, (code, file)) in &self.modules {
            for (line, path) in paths(code) {
                let Some(path) = self.absolute(module, &path) else {
                    continue;
                };
                let target = self.target(&path, 8);
                let shared = module
                    .iter()
                    .zip(&target)
                    .take_while(|(own, other)| own == other)
                    .count();
                if let (Some(own), Some(other)) = (module.get(shared), target.get(shared))
                    && shared > 0
                {
                    let edges = folders.entry(module[..shared].join("/")).or_default();
                    edges
                        .entry((own.clone(), other.clone()))
                        .or_insert_with(|| format!("{file}:{line}"));
                }
            }
        }
        folders
    }
}

fn module_path(source: &Source) -> Module {
    let module = source.module();
    if module.as_os_str() == "lib" {
        return Module::new();
    }
    let parts = module
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect()
}

/// Blanks `#[cfg(test)] mod … { … }`, which rustfmt ends with a brace in the column where it begins.
fn without_tests(text: &str) -> String {
    let mut kept = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let block = |next: &&str| next.contains("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(block) {
            for line in lines.by_ref() {
                kept.push('\n');
                if line == "}" {
                    break;
                }
            }
        } else {
            kept.push_str(line);
        }
        kept.push('\n');
    }
    kept
}

/// Returns every path of a module's code that begins with `crate`, `super` or `self`, with its line.
fn paths(code: &str) -> Vec<(usize, Module)> {
    let mut found = Vec::new();
    for root in ["crate::", "super::", "self::"] {
        for (place, _) in code.match_indices(root) {
            let before = code[..place].chars().next_back();
            if before.is_some_and(|before| before.is_alphanumeric() || "_:$".contains(before)) {
                continue;
            }
            let line = code[..place].matches('\n').count() + 1;
            found.extend(expanded(&code[place..]).into_iter().map(|path| (line, path)));
        }
    }
    found.sort();
    found
}

/// Expands the tree of paths that a text begins with.
fn expanded(text: &str) -> Vec<Module> {
    let mut head = Module::new();
    let mut rest = text.trim_start();
    loop {
        let end = rest
            .find(|found: char| !found.is_alphanumeric() && found != '_')
            .unwrap_or(rest.len());
        let name = &rest[..end];
        if !name.is_empty() {
            head.push(name.to_owned());
        }
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(after) => rest = after.trim_start(),
            None => break,
        }
    }
    let Some(group) = rest.strip_prefix('{') else {
        return if head.is_empty() { Vec::new() } else { vec![head] };
    };
    let (mut depth, mut start, mut trees) = (0, 0, Vec::new());
    for (place, found) in group.char_indices() {
        match found {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                trees.push(&group[start..place]);
                start = place + 1;
                if found == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    let inside = trees.into_iter().flat_map(expanded);
    inside
        .map(|path| head.iter().cloned().chain(path).collect())
        .collect()
}

/// Returns the edges of every circle in words; `None` where there is none.
fn circle(edges: &Edges) -> Option<String> {
    let reaches = |from: &String, to: &String| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            for (_, used) in edges.keys().filter(|(user, _)| user == module) {
                if used == to {
                    return true;
                }
                if seen.insert(used) {
                    next.push(used);
                }
            }
        }
        false
    };
    let in_circle: Vec<String> = edges
        .iter()
        .filter(|((from, to), _)| reaches(to, from))
        .map(|((from, to), place)| format!("{from} -> {to} ({place})"))
        .collect();
    (!in_circle.is_empty()).then(|| in_circle.join(", "))
}
