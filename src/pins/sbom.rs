//! The bill of materials of pinned servers, as CycloneDX 1.6 in JSON.
//!
//! The same pins give the same bytes: there is no clock in it, and its serial number is made of what it says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{ArchiveHash, PackagePin, PackageVersion, Pin};
use crate::protocol::{DependencyName, Digest};

/// What all servers together are called; no server has a colon in its name.
const ALL: &str = "pml:servers";

/// Lists servers, everything that is installed with each, and which of it belongs to which.
///
/// `version` is that of pml, which makes the list.
#[must_use]
pub fn cyclonedx(pins: &BTreeMap<DependencyName, Pin>, version: &str) -> Value {
    let packages = packages(pins);
    let mut components: Vec<Value> = pins.iter().map(|(name, pin)| server(name, pin)).collect();
    components.extend(packages.iter().map(component));
    let depends_on = |reference: &str, on: BTreeSet<&str>| json!({ "ref": reference, "dependsOn": on });
    let servers: Vec<String> = pins.keys().map(server_reference).collect();
    let mut dependencies = vec![depends_on(ALL, servers.iter().map(String::as_str).collect())];
    for (name, reference) in pins.keys().zip(&servers) {
        let own = packages.iter().filter(|package| package.of.contains(name));
        dependencies.push(depends_on(
            reference,
            own.map(|package| package.reference.as_str()).collect(),
        ));
    }
    let nothing = |package: &Component<'_>| depends_on(&package.reference, BTreeSet::new());
    dependencies.extend(packages.iter().map(nothing));
    let mut bill = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": "",
        "version": 1,
        "metadata": {
            "tools": { "components": [{ "type": "application", "name": "pml", "version": version }] },
            "component": { "type": "application", "bom-ref": ALL, "name": "mcp-servers" },
        },
        "components": components,
        "dependencies": dependencies,
    });
    bill["serialNumber"] = serial_number(&bill).into();
    bill
}

/// One package of the list.
struct Component<'a> {
    package: PackageVersion,
    integrity: &'a str,
    reference: String,
    /// The servers that it is installed with.
    of: BTreeSet<&'a DependencyName>,
}

/// Collects all packages. The same package with another content is another one: one of the two is not what it says.
fn packages(pins: &BTreeMap<DependencyName, Pin>) -> Vec<Component<'_>> {
    let mut found: BTreeMap<PackageVersion, BTreeMap<&str, BTreeSet<&DependencyName>>> = BTreeMap::new();
    for (name, pin) in pins {
        for (package, integrity) in pin.package.iter().flat_map(PackagePin::contents) {
            let contents = found.entry(package).or_default();
            contents.entry(integrity).or_default().insert(name);
        }
    }
    let components = found.into_iter().flat_map(|(package, contents)| {
        let several = contents.len() > 1;
        contents.into_iter().map(move |(integrity, of)| Component {
            reference: if several {
                format!("{}#{}", package.purl(), Digest::of([integrity]))
            } else {
                package.purl()
            },
            package: package.clone(),
            integrity,
            of,
        })
    });
    components.collect()
}

fn server_reference(name: &DependencyName) -> String {
    format!("server:{name}")
}

fn server(name: &DependencyName, pin: &Pin) -> Value {
    let mut server = json!({ "type": "application", "bom-ref": server_reference(name), "name": name });
    if let Some(package) = &pin.package {
        server["version"] = package.version.as_str().into();
    }
    server
}

fn component(component: &Component<'_>) -> Value {
    let Component {
        package,
        integrity,
        reference,
        ..
    } = component;
    let mut value = json!({
        "type": "library",
        "bom-ref": reference,
        "name": package.name,
        "version": package.version,
        "purl": package.purl(),
    });
    match ArchiveHash::of(integrity) {
        Some(hash) => value["hashes"] = json!([{ "alg": hash.algorithm, "content": hash.hex }]),
        // No hash of one archive, and still what pml compares.
        None => value["properties"] = json!([{ "name": "pml:integrity", "value": integrity }]),
    }
    value
}

/// Makes a UUID (version 8: of an own making) of everything that the list says.
fn serial_number(bill: &Value) -> String {
    let digest = Digest::of([bill.to_string()]);
    let number = u128::from_str_radix(&digest.as_str()[..32], 16).unwrap_or_default();
    let id = uuid::Builder::from_custom_bytes(number.to_be_bytes()).into_uuid();
    format!("urn:uuid:{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(name: &str, version: &str, packages: &[(&str, &str)]) -> Pin {
        let packages = packages.iter();
        let text = |(title, integrity): &(&str, &str)| ((*title).to_owned(), (*integrity).to_owned());
        Pin {
            package: Some(PackagePin {
                name: name.to_owned(),
                version: version.to_owned(),
                integrity: None,
                package_lock: None,
                published: None,
                provenance: crate::pins::ProvenanceFinding::Absent,
                built_before: None,
                install_scripts: Vec::new(),
                packages: packages.map(text).collect(),
            }),
            ..Pin::default()
        }
    }

    fn pins(pins: impl IntoIterator<Item = (&'static str, Pin)>) -> BTreeMap<DependencyName, Pin> {
        let pins = pins.into_iter();
        pins.map(|(name, pin)| (name.parse().unwrap(), pin)).collect()
    }

    #[test]
    fn a_package_of_two_servers_is_listed_once_and_belongs_to_both() {
        let one = format!("sha256-{}", "1".repeat(64));
        let bill = cyclonedx(
            &pins([
                ("a", pin("pypi:a", "1", &[("a@1", &one), ("shared@2", &one)])),
                ("b", pin("pypi:b", "3", &[("b@3", "bundled"), ("shared@2", &one)])),
                ("plain", Pin::default()),
            ]),
            "9",
        );
        let components = bill["components"].as_array().unwrap().iter();
        let references: Vec<&str> = components
            .map(|found| found["bom-ref"].as_str().unwrap())
            .collect();
        let expected = [
            "server:a",
            "server:b",
            "server:plain",
            "pkg:pypi/a@1",
            "pkg:pypi/b@3",
            "pkg:pypi/shared@2",
        ];
        assert_eq!(references, expected);
        assert_eq!(
            bill["dependencies"][1],
            json!({ "ref": "server:a", "dependsOn": ["pkg:pypi/a@1", "pkg:pypi/shared@2"] })
        );
        assert_eq!(
            bill["dependencies"][2]["dependsOn"],
            json!(["pkg:pypi/b@3", "pkg:pypi/shared@2"])
        );
        assert_eq!(
            bill["components"][3]["hashes"],
            json!([{ "alg": "SHA-256", "content": "1".repeat(64) }])
        );
        assert_eq!(
            bill["components"][4]["properties"],
            json!([{ "name": "pml:integrity", "value": "bundled" }])
        );
    }

    #[test]
    fn one_package_with_two_contents_is_two_components() {
        let (one, two) = ("1".repeat(64), "2".repeat(64));
        let (one, two) = (format!("sha256-{one}"), format!("sha256-{two}"));
        let bill = cyclonedx(
            &pins([
                ("a", pin("pypi:a", "1", &[("x@1", &one)])),
                ("b", pin("pypi:b", "1", &[("x@1", &two)])),
            ]),
            "9",
        );
        let components = &bill["components"].as_array().unwrap()[2..];
        assert_eq!(components.len(), 2);
        assert_eq!(components[0]["purl"], components[1]["purl"]);
        assert_ne!(components[0]["bom-ref"], components[1]["bom-ref"]);
        assert_ne!(
            bill["dependencies"][1]["dependsOn"],
            bill["dependencies"][2]["dependsOn"]
        );
    }

    #[test]
    fn the_same_pins_give_the_same_bytes_and_others_another_serial_number() {
        let of = |version: &str| cyclonedx(&pins([("a", pin("npm:a", version, &[("a@1", "bundled")]))]), "9");
        assert_eq!(of("1").to_string(), of("1").to_string());
        assert_ne!(of("1")["serialNumber"], of("2")["serialNumber"]);
        let serial = of("1")["serialNumber"].as_str().unwrap().to_owned();
        assert!(serial.starts_with("urn:uuid:") && serial.len() == 45, "{serial}");
    }
}
