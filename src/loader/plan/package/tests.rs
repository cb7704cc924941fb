//! The grammar by examples, and by mutations of them.

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn exact(version: &str) -> VersionSpec {
    VersionSpec::Exact(version.to_owned())
}

fn floating(range: &str) -> VersionSpec {
    VersionSpec::Floating(range.to_owned())
}

#[test]
fn npm_specs_are_read_as_npm_reads_them() {
    for (text, name, version) in [
        ("serena", "serena", floating("")),
        ("@scope/serena", "@scope/serena", floating("")),
        ("@scope/serena@0.5.0", "@scope/serena", exact("0.5.0")),
        ("serena@v1.2.3", "serena", exact("1.2.3")),
        ("serena@1.2.3-rc.1+build", "serena", exact("1.2.3-rc.1+build")),
        ("serena@latest", "serena", floating("latest")),
        ("serena@^1", "serena", floating("^1")),
        ("serena@>=1 <2 || 3.x", "serena", floating(">=1 <2 || 3.x")),
        ("serena@1.2", "serena", floating("1.2")),
        ("serena@01.2.3", "serena", floating("01.2.3")),
    ] {
        let package = Package::npm(text).unwrap();
        assert_eq!((package.name(), package.version()), (name, &version), "{text}");
    }
}

#[test]
fn pypi_specs_are_read_as_uv_reads_them() {
    for (text, name, extras, version) in [
        ("mcp-server-time", "mcp-server-time", vec![], floating("")),
        (
            "mcp-server-time==2026.10.19",
            "mcp-server-time",
            vec![],
            exact("2026.10.19"),
        ),
        ("Name_x@1.0.post1", "Name_x", vec![], exact("1.0.post1")),
        ("name@latest", "name", vec![], floating("latest")),
        (
            "name[b,A_a]==1!2.0rc1+local.1",
            "name",
            vec!["a-a", "b"],
            exact("1!2.0rc1+local.1"),
        ),
        ("name >= 1, < 2", "name", vec![], floating(">=1,<2")),
        ("name==1.*", "name", vec![], floating("==1.*")),
        ("name~=1.2", "name", vec![], floating("~=1.2")),
        ("name==1.0.dev3", "name", vec![], exact("1.0.dev3")),
    ] {
        let package = Package::pypi(text).unwrap();
        assert_eq!((package.name(), package.version()), (name, &version), "{text}");
        assert_eq!(package.extras(), extras, "{text}");
    }
}

#[test]
fn what_is_not_a_registry_package_is_refused() {
    let npm = [
        "",
        "-x",
        "--registry=https://a.test",
        "file:../x",
        "./x",
        "../x",
        "/x",
        "~/x",
        "git+ssh://a.test/x",
        "a/b",
        "github:a/b",
        "https://a.test/x.tgz",
        "x@npm:y@1",
        "x@file:../y",
        "x@git+https://a.test/y",
        "x@https://a.test/y.tgz",
        "x@-1",
        "X",
        "@scope",
        "@/x",
        "@scope/",
        "@scope/a/b",
        "@-s/x",
        "x y",
        "x\n",
        "x\u{200b}",
        "é",
        "node_modules",
        ".x",
        "_x",
        "x@1;2",
        "x@$(id)",
        "x@`id`",
    ];
    for text in npm {
        assert!(Package::npm(text).is_err(), "{text:?}");
    }
    let pypi = [
        "",
        "-x",
        "-r requirements.txt",
        "--index-url=https://a.test",
        "x @ https://a.test/x.whl",
        "git+https://a.test/x",
        "./x",
        "x.whl/..",
        "x==1; python_version<'3'",
        "x===1",
        "x==",
        "x[",
        "x[a",
        "x[-a]",
        "x[a]b",
        "x==1 --hash=sha256:0",
        "x-",
        "x\ny",
        "x==1\n-r y",
        "é",
        "x@https://a.test",
        "x@git+https://a.test",
        "x==1,",
        "x>=1,-r",
    ];
    for text in pypi {
        assert!(Package::pypi(text).is_err(), "{text:?}");
    }
    for text in [
        "x@1.0.0",
        "gem:x",
        "npm",
        "npm:",
        "pypi:",
        "npm:npm:x",
        "NPM:x",
        "npm:file:x",
    ] {
        assert!(Package::explicit(text).is_err(), "{text:?}");
    }
    for text in ["", "-x", "../x", "a/b", "a b", "x;y"] {
        assert!(
            Package::npm("x").unwrap().with_executable(text).is_err(),
            "{text:?}"
        );
        assert!(Package::pypi("x").unwrap().with_python(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_spec_is_written_as_it_is_read() {
    for text in [
        "npm:@scope/x@1.2.3",
        "npm:x",
        "npm:x@^1",
        "pypi:x[a,b]==1.0",
        "pypi:x>=1,<2",
        "pypi:x@latest",
        "pypi:x",
    ] {
        assert_eq!(Package::explicit(text).unwrap().to_string(), text);
    }
}

/// Good specs, each torn apart and put together with what an attacker would like to smuggle in.
fn mutated() -> impl Strategy<Value = String> {
    let seeds = prop::sample::select(vec![
        "@scope/name@1.2.3",
        "name@^1.0.0",
        "name",
        "name==1.2.3",
        "name[extra]>=1,<2",
        "name@latest",
        "npm:x@1.0.0",
        "pypi:x==1",
    ]);
    let poison = prop::sample::select(vec![
        "-",
        "--",
        "-g",
        "--registry=http://a.test",
        "file:",
        "git+ssh://",
        "https://a.test/x.tgz",
        "npm:",
        "../",
        "/",
        "\\",
        ";",
        "$(id)",
        "`id`",
        "\n",
        "\r",
        "\0",
        " ",
        "\u{202e}",
        "\u{200b}",
        "@",
        "==",
        "[",
        "]",
        "~",
        "#",
        "%2f",
        "..",
        "é",
        "*",
        "|",
        "&",
        "=",
    ]);
    (
        seeds,
        prop::collection::vec((any::<prop::sample::Index>(), poison, any::<bool>()), 1..4),
    )
        .prop_map(|(seed, changes)| {
            let mut text: Vec<char> = seed.chars().collect();
            for (place, poison, replace) in changes {
                let place = place.index(text.len() + 1);
                if replace && place < text.len() {
                    text.remove(place);
                }
                text.splice(place..place, poison.chars());
            }
            text.into_iter().collect()
        })
}

fn is_inside_the_grammar(package: &Package) -> bool {
    let spec = package.spec();
    let name = match package.ecosystem() {
        Ecosystem::Npm => is_npm_name(package.name()),
        Ecosystem::Pypi => {
            is_pypi_name(package.name()) && package.extras().iter().all(|extra| is_pypi_name(extra))
        }
    };
    name && spec.is_ascii()
        && !spec.starts_with('-')
        && !spec.contains([':', '\\', '\n', '\r', '\0', ';', '$', '`', '&', '#', '%'])
        && spec.split('/').all(|part| part != "..")
        && spec.matches('/').count() == usize::from(spec.starts_with('@'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_mutated_spec_is_refused_or_inside_the_grammar(text in mutated()) {
        for package in [Package::npm(&text), Package::pypi(&text), Package::explicit(&text)].into_iter().flatten() {
            prop_assert!(is_inside_the_grammar(&package), "{text:?} became {package:?}");
        }
    }

    #[test]
    fn any_text_is_refused_or_inside_the_grammar(text in any::<String>()) {
        for package in [Package::npm(&text), Package::pypi(&text), Package::explicit(&text)].into_iter().flatten() {
            prop_assert!(is_inside_the_grammar(&package), "{text:?} became {package:?}");
        }
    }
}
