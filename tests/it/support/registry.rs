//! A registry on the loopback interface that serves what a test publishes, also what no honest registry would.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

/// How a file is sent.
#[derive(Clone)]
pub(crate) enum Body {
    /// As it is.
    Whole(Vec<u8>),
    /// Half of it, then the connection closes.
    Cut(Vec<u8>),
    /// For ever.
    Endless,
    /// For ever, as fast as it is taken: this again and again.
    Flood(Vec<u8>),
    /// Not at all: it is said to be elsewhere.
    Moved(String),
    /// Not at all: with this status instead.
    Status(u16),
    /// Not at all: the connection closes.
    Closed,
    /// Not at all: the connection stays open, and nothing comes.
    Silent,
    /// As it is, once it is let go.
    Held(Arc<Held>),
}

/// A file that is sent once it is let go.
pub(crate) struct Held {
    content: Vec<u8>,
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Held {
    pub(crate) fn new(content: &[u8]) -> Arc<Self> {
        Arc::new(Self {
            content: content.to_vec(),
            is_released: Mutex::new(false),
            released: Condvar::new(),
        })
    }

    /// Lets it go, to all who wait for it and who ask for it from now on.
    pub(crate) fn release(&self) {
        *self.is_released.lock().unwrap() = true;
        self.released.notify_all();
    }

    fn wait(&self) -> &[u8] {
        let is_released = self.is_released.lock().unwrap();
        let waited = self.released.wait_while(is_released, |released| !*released);
        drop(waited.unwrap());
        &self.content
    }
}

#[derive(Default)]
struct Shared {
    files: HashMap<String, Body>,
    asked: Vec<String>,
    documents: HashMap<String, Value>,
}

/// A registry; it ends with the process.
pub(crate) struct Registry {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Mutex<Shared>>::default();
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || answer(&stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The user's settings that lead here; a failing download fails at once.
    pub(crate) fn npmrc(&self) -> String {
        format!("registry={}\nfetch-retries=0\n", self.url())
    }

    pub(crate) fn tarball(name: &str, version: &str) -> String {
        format!("/{name}/-/{name}-{version}.tgz")
    }

    /// Publishes a version with files beside its `package.json`.
    pub(crate) fn publish(&self, name: &str, version: &str, manifest: &Value, files: &[(&str, &str)]) {
        let archive = archive(name, version, manifest, files);
        let integrity = integrity(&archive);
        self.publish_as(name, version, manifest, Body::Whole(archive), &integrity);
    }

    /// Publishes a version whose archive and integrity need not belong together.
    pub(crate) fn publish_as(
        &self,
        name: &str,
        version: &str,
        manifest: &Value,
        body: Body,
        integrity: &str,
    ) {
        let path = Self::tarball(name, version);
        let mut described = full(name, version, manifest);
        described["dist"] = json!({
            "tarball": format!("http://{}{path}", self.address),
            "integrity": integrity,
        });
        let mut shared = self.shared.lock().unwrap();
        let document = shared
            .documents
            .entry(name.to_owned())
            .or_insert_with(|| json!({ "name": name, "dist-tags": {}, "versions": {} }));
        document["dist-tags"]["latest"] = version.into();
        document["versions"][version] = described;
        let text = document.to_string().into_bytes();
        shared.files.insert(format!("/{name}"), Body::Whole(text));
        shared.files.insert(path, body);
    }

    /// Says when a version was published; a registry says nothing of the others.
    pub(crate) fn date(&self, name: &str, version: &str, published: &str) {
        let mut shared = self.shared.lock().unwrap();
        let document = shared.documents.get_mut(name).unwrap();
        document["time"][version] = published.into();
        let text = document.to_string().into_bytes();
        shared.files.insert(format!("/{name}"), Body::Whole(text));
    }

    /// Keeps back what the registry says of a package until it is let go.
    pub(crate) fn hold(&self, name: &str) -> Arc<Held> {
        let mut shared = self.shared.lock().unwrap();
        let held = Held::new(shared.documents[name].to_string().as_bytes());
        let body = Body::Held(Arc::clone(&held));
        shared.files.insert(format!("/{name}"), body);
        held
    }

    /// Changes what the registry says of a package.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Value)) {
        let mut shared = self.shared.lock().unwrap();
        let document = shared.documents.get_mut(name).unwrap();
        change(document);
        let text = document.to_string().into_bytes();
        shared.files.insert(format!("/{name}"), Body::Whole(text));
    }

    /// Serves a file as it is.
    pub(crate) fn serve(&self, path: &str, content: &[u8]) {
        let body = Body::Whole(content.to_vec());
        self.shared.lock().unwrap().files.insert(path.to_owned(), body);
    }

    /// Says of a version that it has an attestation, and serves that.
    pub(crate) fn attest(&self, name: &str, version: &str, body: Body) {
        let path = format!("/-/npm/v1/attestations/{name}@{version}");
        let mut shared = self.shared.lock().unwrap();
        let document = shared.documents.get_mut(name).unwrap();
        document["versions"][version]["dist"]["attestations"] = json!({
            // Never followed: attestations come from the registry's own host.
            "url": "http://127.0.0.1:9/elsewhere",
            "provenance": { "predicateType": "https://slsa.dev/provenance/v1" },
        });
        let text = document.to_string().into_bytes();
        shared.files.insert(format!("/{name}"), Body::Whole(text));
        shared.files.insert(path, body);
    }

    /// Serves a file in this way.
    pub(crate) fn serve_as(&self, path: &str, body: Body) {
        self.shared.lock().unwrap().files.insert(path.to_owned(), body);
    }

    /// Serves a file that never ends.
    pub(crate) fn stall(&self, path: &str) {
        self.shared
            .lock()
            .unwrap()
            .files
            .insert(path.to_owned(), Body::Endless);
    }

    /// How often a path was asked for.
    pub(crate) fn hits(&self, path: &str) -> usize {
        let shared = self.shared.lock().unwrap();
        shared.asked.iter().filter(|asked| *asked == path).count()
    }
}

fn full(name: &str, version: &str, manifest: &Value) -> Value {
    let mut full = manifest.clone();
    full["name"] = name.into();
    full["version"] = version.into();
    full
}

/// The moment this many hours ago, as registries write it.
pub(crate) fn hours_ago(hours: i64) -> String {
    let moment = pml::proxy::now().millis() - hours * 60 * 60 * 1000;
    pml::pins::PublishedAt::from_unix_ms(moment).unwrap().to_string()
}

/// Packs a version as npm does: everything below `package/`.
pub(crate) fn archive(name: &str, version: &str, manifest: &Value, files: &[(&str, &str)]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("package");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(
        package.join("package.json"),
        full(name, version, manifest).to_string(),
    )
    .unwrap();
    for (name, text) in files {
        std::fs::write(package.join(name), text).unwrap();
    }
    let output = Command::new("tar")
        .arg("-czf")
        .arg("-")
        .arg("-C")
        .arg(folder.path())
        .arg("package")
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

/// The integrity that npm would compute.
pub(crate) fn integrity(archive: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = Sha512::digest(archive);
    let mut text = String::from("sha512-");
    for group in hash.chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for place in 0..4 {
            if place <= group.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn answer(stream: &TcpStream, shared: &Mutex<Shared>) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(request)) = lines.next() else { return };
    while lines
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = {
        let mut shared = shared.lock().unwrap();
        shared.asked.push(path.clone());
        shared.files.get(&path).cloned()
    };
    // The index of Python packages is a page, or the same as JSON.
    let kind = match &body {
        Some(Body::Whole(page)) if path.starts_with("/simple") && page.starts_with(b"{") => {
            "application/vnd.pypi.simple.v1+json"
        }
        _ if path.starts_with("/simple") => "text/html",
        _ => "application/json",
    };
    let mut stream = stream;
    let mut send = |status: &str, length: usize, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n"
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body))
    };
    let _ = match body {
        None => send("404 Not Found", 2, b"{}"),
        Some(Body::Status(status)) => send(&format!("{status} So"), 2, b"{}"),
        Some(Body::Closed) => Ok(()),
        Some(Body::Silent) => std::io::copy(&mut stream, &mut std::io::sink()).map(drop),
        Some(Body::Moved(place)) => send(&format!("302 Found\r\nlocation: {place}"), 2, b"{}"),
        Some(Body::Flood(piece)) => {
            let mut outcome = send("200 OK", usize::MAX >> 12, b"");
            while outcome.is_ok() {
                outcome = stream.write_all(&piece);
            }
            outcome
        }
        Some(Body::Whole(body)) => send("200 OK", body.len(), &body),
        Some(Body::Held(held)) => {
            let body = held.wait();
            send("200 OK", body.len(), body)
        }
        Some(Body::Cut(body)) => send("200 OK", body.len(), &body[..body.len() / 2]),
        Some(Body::Endless) => {
            let mut outcome = send("200 OK", usize::MAX >> 12, b"");
            while outcome.is_ok() {
                // Slowly: it must not end, it need not fill the disk.
                std::thread::sleep(std::time::Duration::from_millis(5));
                outcome = stream.write_all(&[0; 1024]);
            }
            outcome
        }
    };
}
