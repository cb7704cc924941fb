//! A world whose one server comes from a hostile registry, and what must hold whatever it serves.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::packages::{files_below, tarball};
use super::registry::{Body, Registry, integrity};
use super::world::{World, stderr};

/// A server that does nothing.
pub(crate) const SERVER: &str = "#!/usr/bin/env node\n";

/// A world with one server `hello`, which is allowed without a question.
pub(crate) struct Attack {
    pub(crate) registry: Registry,
    pub(crate) world: World,
}

impl Attack {
    /// The server is the npm package `hello@1.0.0`.
    pub(crate) fn npm() -> Self {
        Self::of(&["npx", "hello@1.0.0"])
    }

    /// The server is the Python package `hello==1.0`.
    pub(crate) fn pypi() -> Self {
        Self::of(&["uvx", "hello==1.0"])
    }

    fn of(line: &[&str]) -> Self {
        let (registry, world) = (Registry::start(), World::new());
        std::fs::write(world.home().join(".npmrc"), registry.npmrc()).unwrap();
        world.set("UV_DEFAULT_INDEX", &format!("{}simple", registry.url()));
        world.configure(&json!({
            "permissions": { "allow": ["hello"] },
            "mcpServers": { "hello": { "command": line[0], "args": &line[1..] } },
        }));
        Self { registry, world }
    }

    /// What an attack would write.
    pub(crate) fn marker(&self) -> PathBuf {
        self.world.home().join("marker")
    }

    /// How many bytes the caches of installers hold.
    pub(crate) fn cached(&self) -> u64 {
        let cache = self.world.home().join(".cache/pml");
        let files = files_below(&cache).into_iter();
        files
            .map(|file| cache.join(file).symlink_metadata().unwrap().len())
            .sum()
    }

    /// Installs the server, and expects an error with every one of these texts.
    pub(crate) fn assert_refused(&self, texts: &[&str]) {
        let output = self.world.run(&["install"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{texts:?}: {said}");
        for text in texts {
            assert!(said.contains(text), "{text:?} is not in {said}");
        }
        for folder in ["store/npm", "store/pypi", "temporary", "frozen"] {
            let folder = self.world.home().join(".local/share/pml").join(folder);
            assert_eq!(entries(&folder), Vec::<PathBuf>::new(), "{said}");
        }
        self.assert_nothing_ran();
    }

    /// Installs the server, and expects that nothing of it runs.
    pub(crate) fn assert_harmless(&self) {
        let output = self.world.run(&["install"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let temporary = self.world.home().join(".local/share/pml/temporary");
        assert_eq!(entries(&temporary), Vec::<PathBuf>::new());
        self.assert_nothing_ran();
    }

    fn assert_nothing_ran(&self) {
        let planted = self
            .world
            .files()
            .into_iter()
            .find(|file| file.ends_with("marker"));
        assert_eq!(planted, None);
        assert!(!Path::new("/marker").exists() && !Path::new("/tmp/marker").exists());
        #[cfg(target_os = "linux")]
        super::eventually("every installer is gone", super::DEADLINE, || {
            working_below(self.world.home()).is_empty()
        });
    }
}

/// Publishes `hello` with the entries of an archive beside an honest `package.json` and server.
pub(crate) fn publish(registry: &Registry, manifest: &Value, entries: &[(&str, &str, &str)]) {
    let mut manifest = manifest.clone();
    if manifest.get("bin").is_none() {
        manifest["bin"] = "server.js".into();
    }
    let mut described = manifest.clone();
    described["name"] = "hello".into();
    described["version"] = "1.0.0".into();
    let described = described.to_string();
    let mut all = vec![("package/server.js", "file", SERVER)];
    if !entries.iter().any(|(name, ..)| *name == "package/package.json") {
        all.push(("package/package.json", "file", &described));
    }
    all.extend(entries);
    let archive = tarball(&all);
    let promised = integrity(&archive);
    registry.publish_as("hello", "1.0.0", &manifest, Body::Whole(archive), &promised);
}

/// A manifest with one dependency.
pub(crate) fn depends(on: &str, spec: &str) -> Value {
    json!({ "dependencies": { on: spec } })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The processes whose working directory lies below `folder`: installers carry no mark, their environment is cleared.
#[cfg(target_os = "linux")]
fn working_below(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap();
    let works = |process: &PathBuf| {
        std::fs::read_link(process.join("cwd")).is_ok_and(|directory| directory.starts_with(&folder))
    };
    entries(Path::new("/proc")).into_iter().filter(works).collect()
}

/// Archives that bring a package with an install script which npm finds when it builds, and a walk over scopes does not.
///
/// An undeclared folder makes npm distrust its own record of what lies there; the edge that it then follows is in the
/// archive alone. The first hides in a name that begins like a scope, the second behind the other slash.
pub(crate) fn hidden_packages(script: &str) -> [Vec<(String, String)>; 2] {
    let package = |name: &str, scripts: &Value| {
        json!({ "name": name, "version": "1.0.0", "scripts": scripts }).to_string()
    };
    let install = json!({ "install": script });
    let at = |path: &str| format!("package/{path}");
    let manifest = |dependencies: Value| {
        let mut manifest = json!({ "name": "hello", "version": "1.0.0", "bin": "server.js" });
        manifest["scripts"] = json!({ "postinstall": "true" });
        manifest["dependencies"] = dependencies;
        (at("package.json"), manifest.to_string())
    };
    let undeclared = (at("node_modules/z/package.json"), package("z", &json!({})));
    [
        vec![
            manifest(json!({ "@a/@b": "1.0.0" })),
            (at("node_modules/@a/@b/package.json"), package("@a/@b", &install)),
            undeclared.clone(),
        ],
        vec![
            manifest(json!({ "lib": "1.0.0", "z": "1.0.0" })),
            (at("node_modules/z/lib/package.json"), package("lib", &install)),
            (at("node_modules/z\\lib/x"), "x".to_owned()),
            (at("node_modules/lib/package.json"), package("lib", &json!({}))),
            undeclared,
        ],
    ]
}

/// Publishes `hello@1.0.0` with such an archive; the registry says nothing of its dependencies.
pub(crate) fn publish_hidden(registry: &Registry, script: &str, archive: &[(String, String)]) {
    let described = json!({ "bin": "server.js", "scripts": { "postinstall": script } });
    let mut entries = vec![("package/server.js", "file", SERVER)];
    let files = archive
        .iter()
        .map(|(path, text)| (path.as_str(), "file", text.as_str()));
    entries.extend(files);
    let archive = tarball(&entries);
    let promised = integrity(&archive);
    registry.publish_as("hello", "1.0.0", &described, Body::Whole(archive), &promised);
}
