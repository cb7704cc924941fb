//! Every way in which an attestation may be there, not be there, or lie; see `tests/fixtures/provenance/README.md`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::root::TrustRoot;
use super::verification::{Subject, verify};
use super::*;
use crate::report::Hint as _;

fn fixture(name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/provenance");
    let made = fixtures.join("made").join(name);
    if made.exists() { made } else { fixtures.join(name) }
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(fixture(name)).unwrap()
}

fn document(name: &str) -> Value {
    serde_json::from_slice(&read(name)).unwrap()
}

fn root(text: &Value) -> Result<TrustRoot, ProvenanceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.json");
    #[expect(clippy::disallowed_methods, reason = "a test writes its own fixture")]
    std::fs::write(&path, text.to_string()).unwrap();
    TrustRoot::load(Some(&path))
}

fn integrity(archive: &str) -> String {
    use sha2::Digest as _;
    format!("sha512-{}", STANDARD.encode(sha2::Sha512::digest(read(archive))))
}

fn hello() -> Subject {
    npm::subject("hello", "1.0.0", &integrity("hello-1.0.0.tgz")).unwrap()
}

/// Verifies the provenance of an npm document.
fn outcome(document: &Value, subject: &Subject, root: &TrustRoot) -> Result<Provenance, ProvenanceError> {
    let bundles = npm::bundles(document.to_string().as_bytes())?;
    assert_eq!(bundles.len(), 1);
    verify(&bundles[0], subject, root)
}

fn refused(document: &Value, subject: &Subject, root: &TrustRoot) -> String {
    outcome(document, subject, root).unwrap_err().to_string()
}

/// The bundle of the provenance in an npm document.
fn bundle(document: &mut Value) -> &mut Value {
    &mut document["attestations"][1]["bundle"]
}

fn mock_root() -> TrustRoot {
    root(&document("root.json")).unwrap()
}

fn built(repository: &str, id: &str, workflow: &str) -> Provenance {
    Provenance {
        repository: repository.to_owned(),
        repository_id: Some(id.to_owned()),
        workflow: workflow.to_owned(),
        commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
    }
}

const RELEASE: &str = ".github/workflows/release.yml@refs/tags/v1";

#[test]
fn a_provenance_names_its_repository_its_workflow_and_its_commit() {
    let root = mock_root();
    assert_eq!(
        outcome(&document("npm-1.0.0.json"), &hello(), &root),
        Ok(built("github.com/owner/hello", "1", RELEASE))
    );
    let next = npm::subject("hello", "1.1.0", &integrity("hello-1.1.0.tgz")).unwrap();
    assert_eq!(
        outcome(&document("npm-1.1.0-other-repository.json"), &next, &root),
        Ok(built("github.com/someone/else", "2", RELEASE))
    );
    assert_eq!(
        outcome(&document("npm-gitlab.json"), &hello(), &root),
        Ok(built(
            "gitlab.com/group/sub/hello",
            "1",
            ".gitlab-ci.yml@refs/heads/main"
        ))
    );
}

#[test]
fn a_provenance_of_a_python_archive_is_read_as_pep_740_writes_it() {
    let wheel = Wheel {
        file: "hello-1.0.0-py3-none-any.whl".to_owned(),
        sha256: sha256("hello-1.0.0-py3-none-any.whl"),
        listing: Listing::Open,
    };
    let bundles = pypi::bundles(&read("pypi-1.0.0.json")).unwrap();
    assert_eq!(bundles.len(), 1);
    let subject = pypi::subject(&wheel).unwrap();
    assert_eq!(
        verify(&bundles[0], &subject, &mock_root()),
        Ok(built("github.com/owner/hello", "1", RELEASE))
    );
    // Tools spell the name of a file in more than one way.
    let spelled = Wheel {
        file: "Hello-1.0.0-py3_none_any.whl".to_owned(),
        ..wheel.clone()
    };
    let subject = pypi::subject(&spelled).unwrap();
    assert!(verify(&bundles[0], &subject, &mock_root()).is_ok());
    let other = Wheel {
        file: "hello-1.0.1-py3-none-any.whl".to_owned(),
        ..wheel
    };
    let subject = pypi::subject(&other).unwrap();
    assert_eq!(
        verify(&bundles[0], &subject, &mock_root())
            .unwrap_err()
            .to_string(),
        "its attestation is about `hello-1.0.0-py3-none-any.whl`, not about `hello-1.0.1-py3-none-any.whl`"
    );
}

fn sha256(archive: &str) -> String {
    use sha2::Digest as _;
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in sha2::Sha256::digest(read(archive)) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

#[test]
fn a_real_provenance_verifies_with_the_keys_in_pml() {
    let hash = "46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c";
    let bytes: Vec<u8> = (0..hash.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hash[at..at + 2], 16).unwrap())
        .collect();
    let integrity = format!("sha512-{}", STANDARD.encode(bytes));
    let subject = npm::subject("sigstore", "2.0.0", &integrity).unwrap();
    let text = String::from_utf8(read("sigstore.js-2.0.0.json")).unwrap();
    let root = TrustRoot::load(None).unwrap();
    let provenance = verify(&text, &subject, &root).unwrap();
    assert_eq!(provenance.repository, "github.com/sigstore/sigstore-js");
    // What npm serves names the number, too.
    assert_eq!(provenance.repository_id.as_deref(), Some("495574555"));
    assert_eq!(
        provenance.workflow,
        ".github/workflows/release.yml@refs/heads/main"
    );
}

#[test]
fn a_forged_signature_or_statement_is_refused() {
    let root = mock_root();
    let forged = "its attestation is forged: the signature is not that of its certificate";
    let mut document = document("npm-1.0.0.json");
    let good = bundle(&mut document).clone();
    // The signature of another statement by another key.
    let mut other = self::document("npm-gitlab.json");
    let foreign = bundle(&mut other)["dsseEnvelope"]["signatures"].clone();
    bundle(&mut document)["dsseEnvelope"]["signatures"] = foreign;
    assert_eq!(refused(&document, &hello(), &root), forged);
    // Another statement under the same signature.
    *bundle(&mut document) = good.clone();
    let payload = bundle(&mut other)["dsseEnvelope"]["payload"].clone();
    let mut statement: Value =
        serde_json::from_slice(&STANDARD.decode(payload.as_str().unwrap()).unwrap()).unwrap();
    statement["predicate"] = json!({ "changed": true });
    bundle(&mut document)["dsseEnvelope"]["payload"] = STANDARD.encode(statement.to_string()).into();
    assert_eq!(refused(&document, &hello(), &root), forged);
    // The certificate of another build, whose repository would be shown.
    *bundle(&mut document) = good.clone();
    let foreign = bundle(&mut other)["verificationMaterial"]["certificate"].clone();
    bundle(&mut document)["verificationMaterial"]["certificate"] = foreign;
    assert_eq!(refused(&document, &hello(), &root), forged);
    // An entry of the log that was changed after it was signed.
    *bundle(&mut document) = good;
    bundle(&mut document)["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = "1700000000".into();
    let said = refused(&document, &hello(), &root);
    assert!(said.starts_with("its attestation is forged: "), "{said}");
}

#[test]
fn every_changed_byte_of_what_is_signed_is_refused() {
    let root = mock_root();
    let good = document("npm-1.0.0.json");
    for pointer in [
        "/dsseEnvelope/payload",
        "/dsseEnvelope/signatures/0/sig",
        "/verificationMaterial/certificate/rawBytes",
        "/verificationMaterial/tlogEntries/0/canonicalizedBody",
        "/verificationMaterial/tlogEntries/0/inclusionPromise/signedEntryTimestamp",
        "/verificationMaterial/tlogEntries/0/inclusionProof/rootHash",
        "/verificationMaterial/tlogEntries/0/logId/keyId",
    ] {
        let path = format!("/attestations/1/bundle{pointer}");
        let text = good.pointer(&path).unwrap().as_str().unwrap();
        let bytes = STANDARD.decode(text).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 16 + 1) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let mut document = good.clone();
            *document.pointer_mut(&path).unwrap() = STANDARD.encode(changed).into();
            assert!(
                outcome(&document, &hello(), &root).is_err(),
                "{pointer} byte {at}"
            );
        }
    }
}

#[test]
fn an_attestation_without_its_entry_in_the_log_is_refused() {
    let root = mock_root();
    let mut document = document("npm-1.0.0.json");
    bundle(&mut document)["verificationMaterial"]["tlogEntries"] = json!([]);
    let said = refused(&document, &hello(), &root);
    assert!(said.starts_with("its attestation cannot be read: "), "{said}");
}

#[test]
fn an_attestation_of_another_package_version_or_content_is_refused() {
    let root = mock_root();
    let document = document("npm-1.0.0.json");
    let same = integrity("hello-1.0.0.tgz");
    for (name, version, about) in [
        ("hallo", "1.0.0", "pkg:npm/hallo@1.0.0"),
        ("hello", "1.0.1", "pkg:npm/hello@1.0.1"),
        ("@owner/hello", "1.0.0", "pkg:npm/%40owner/hello@1.0.0"),
    ] {
        let subject = npm::subject(name, version, &same).unwrap();
        assert_eq!(
            refused(&document, &subject, &root),
            format!("its attestation is about `pkg:npm/hello@1.0.0`, not about `{about}`")
        );
    }
    let subject = npm::subject("hello", "1.0.0", &integrity("hello-1.1.0.tgz")).unwrap();
    let said = refused(&document, &subject, &root);
    assert!(
        said.starts_with("its attestation is about other content than the registry serves: sha512:"),
        "{said}"
    );
}

#[test]
fn an_identity_that_no_build_service_vouches_for_is_refused() {
    assert_eq!(
        refused(&document("npm-other-issuer.json"), &hello(), &mock_root()),
        "its attestation is signed by `https://github.com/owner/hello/.github/workflows/release.yml@refs/tags/v1`, for whom `https://accounts.google.com` vouches, which is no build service that pml knows"
    );
}

#[test]
fn a_certificate_that_was_not_valid_when_it_signed_is_refused() {
    let said = refused(&document("npm-expired.json"), &hello(), &mock_root());
    assert!(
        said.starts_with(
            "its attestation was signed outside the validity of its certificate: it was signed at "
        ),
        "{said}"
    );
}

#[test]
fn a_trust_root_that_had_expired_when_it_was_signed_is_refused() {
    let attestation = document("npm-1.0.0.json");
    let past = json!({ "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z" });
    for (path, what) in [
        (
            "/tlogs/0/publicKey/validFor",
            "its attestation was signed outside the validity of the log's key in the trust root: it was logged at ",
        ),
        (
            "/certificateAuthorities/0/validFor",
            "its attestation was signed outside the validity of the authority in the trust root: it was signed at ",
        ),
    ] {
        let mut keys = document("root.json");
        *keys.pointer_mut(path).unwrap() = past.clone();
        let error = outcome(&attestation, &hello(), &root(&keys).unwrap()).unwrap_err();
        assert!(error.to_string().starts_with(what), "{error}");
        assert!(error.hint().unwrap().contains("\"sigstoreRoot\""));
    }
}

#[test]
fn a_key_that_the_trust_root_does_not_have_is_told_with_the_age_of_the_root() {
    let attestation = document("npm-1.0.0.json");
    let version = env!("CARGO_PKG_VERSION");
    // The root in pml knows the public deployment only.
    let error = outcome(&attestation, &hello(), &TrustRoot::load(None).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "its attestation is signed by a key that is not known: its transparency log is not in the trust root in pml {version}, which is as old as this build of pml"
        )
    );
    let hint = error.hint().unwrap();
    assert!(hint.contains("a newer pml knows the newer ones"), "{hint}");
    // One key after the other is another deployment's.
    let other = document("other-root.json");
    for (part, what) in [
        ("tlogs", "its transparency log"),
        (
            "certificateAuthorities",
            "the authority that issued its certificate",
        ),
        ("ctlogs", "the log that its certificate names"),
    ] {
        let mut keys = document("root.json");
        keys[part] = other[part].clone();
        let error = outcome(&attestation, &hello(), &root(&keys).unwrap()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with(&format!(
                "its attestation is signed by a key that is not known: {what} is not in the trust root `"
            )),
            "{said}"
        );
    }
}

#[test]
fn a_trust_root_that_cannot_be_used_is_refused() {
    let absent = TrustRoot::load(Some(Path::new("/nowhere/root.json")));
    assert_eq!(
        absent.err().unwrap().to_string(),
        "the trust root `/nowhere/root.json` cannot be used: there is no such file"
    );
    for keys in [json!([]), json!({ "mediaType": "x", "tlogs": [{}] })] {
        let said = root(&keys).err().unwrap().to_string();
        assert!(said.contains("cannot be used: "), "{said}");
    }
    // A root without a key refuses everything.
    let empty = root(&json!({ "mediaType": "x" })).unwrap();
    assert!(outcome(&document("npm-1.0.0.json"), &hello(), &empty).is_err());
}

#[test]
fn what_is_no_attestation_is_refused() {
    let huge = format!("[{}]", "[".repeat(100_000));
    for text in [
        "",
        "<html>",
        "{}",
        "[]",
        r#"{"attestations":1}"#,
        r#"{"attestations":[{}]}"#,
        &huge,
    ] {
        for read in [npm::bundles(text.as_bytes()), pypi::bundles(text.as_bytes())] {
            let said = read.unwrap_err().to_string();
            assert!(
                said.starts_with("its attestation cannot be read: "),
                "{text}: {said}"
            );
        }
    }
    let said = verify("{}", &hello(), &mock_root()).unwrap_err().to_string();
    assert!(said.starts_with("its attestation cannot be read: "), "{said}");
    let many = json!({ "attestations": vec![document("npm-1.0.0.json")["attestations"][1].clone(); 9] });
    assert_eq!(
        npm::bundles(many.to_string().as_bytes()).unwrap_err().to_string(),
        "its attestation cannot be read: it holds more than 8 provenances"
    );
    let mut newer = document("pypi-1.0.0.json");
    newer["version"] = 2.into();
    assert_eq!(
        pypi::bundles(newer.to_string().as_bytes())
            .unwrap_err()
            .to_string(),
        "its attestation cannot be read: version 2 of the format is not known"
    );
}

#[test]
fn a_publisher_without_a_repository_has_no_provenance() {
    let mut document = document("pypi-1.0.0.json");
    document["attestation_bundles"][0]["publisher"]["kind"] = "Google".into();
    assert_eq!(pypi::bundles(document.to_string().as_bytes()), Ok(Vec::new()));
}

#[test]
fn attestations_are_asked_for_at_the_registrys_own_host() {
    let registry = Url::parse("https://a.test/npm/?x#y").unwrap();
    assert_eq!(
        npm::address(&registry, "@scope/name", "1.0.0").unwrap().as_str(),
        "https://a.test/npm/-/npm/v1/attestations/@scope%2Fname@1.0.0"
    );
    let index = Url::parse("https://b.test/root/simple").unwrap();
    assert_eq!(
        pypi::page(&index, "hello").unwrap().as_str(),
        "https://b.test/root/simple/hello/"
    );
    assert_eq!(
        pypi::address(&index, "hello", "1.0", "hello-1.0-py3-none-any.whl")
            .unwrap()
            .as_str(),
        "https://b.test/integrity/hello/1.0/hello-1.0-py3-none-any.whl/provenance"
    );
}

#[test]
fn the_wheels_of_a_page_are_those_of_the_version_and_of_this_system() {
    let hashes = ["aa".to_owned(), "bb".to_owned(), "cc".to_owned()];
    let json = json!({ "files": [
        { "filename": "x-1-py3-none-any.whl", "hashes": { "sha256": "aa" } },
        { "filename": "x-1.tar.gz", "hashes": { "sha256": "bb" } },
        { "filename": "x-1-cp313-cp313-win_amd64.whl", "hashes": { "sha256": "cc" }, "provenance": null },
        { "filename": "x-2-py3-none-any.whl", "hashes": { "sha256": "dd" } },
        { "filename": "x-1-py3-none-linux_x86_64.macosx_11_0_arm64.whl", "hashes": { "sha256": "bb" }, "provenance": null },
        { "filename": "x-1-py2-none-any.whl", "hashes": { "sha256": "cc" }, "provenance": "https://a.test/" },
    ] });
    let found = pypi::wheels(json.to_string().as_bytes(), &hashes).unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|wheel| (wheel.file.as_str(), wheel.listing))
        .collect();
    assert_eq!(
        found,
        [
            ("x-1-py3-none-any.whl", Listing::Open),
            ("x-1-py3-none-linux_x86_64.macosx_11_0_arm64.whl", Listing::Absent),
            ("x-1-py2-none-any.whl", Listing::Open),
        ]
    );
    let html = "<!DOCTYPE html><a href=\"/f/x-1-py3-none-any.whl#sha256=aa\" data-requires-python='3'>x</a>\
        <a data-x='1' href='https://a.test/x-1%2Blocal-py3-none-any.whl#sha256=bb&amp;x'>y</a><a href=z>z</a><a href=\"x.whl\">";
    let found = pypi::wheels(html.as_bytes(), &hashes).unwrap();
    let found: Vec<_> = found.iter().map(|wheel| wheel.file.as_str()).collect();
    assert_eq!(found, ["x-1-py3-none-any.whl", "x-1+local-py3-none-any.whl"]);
}
