//! Launch lines and what becomes of them.

use pretty_assertions::assert_eq;

use super::*;
use crate::config::{FilePosition, Startup};
use crate::report::render_hinted;
use std::fmt::Write as _;
use std::time::Duration;

fn environment() -> Environment {
    Environment::new(
        [
            ("TOKEN", "hunter2"),
            ("VERSION", "1.2.3"),
            ("EVIL", "--registry=hunter2"),
        ],
        "/elsewhere",
    )
}

fn server(launch: Launch) -> Server {
    Server {
        launch,
        env: BTreeMap::new(),
        variables_file: None,
        directory: "/project".into(),
        cwd: "/project".into(),
        disabled: false,
        allow_scripts: false,
        startup: Startup::Lazy,
        opened_in: None,
        start_timeout: Duration::from_mins(1),
        call_timeout: None,
        idle: None,
        tools: Vec::new(),
        source: FilePosition {
            file: "/project/.pml.json".into(),
            line: 1,
            column: 1,
        },
    }
}

fn command(line: &str) -> Server {
    let mut words = line.split(' ').map(str::to_owned);
    server(Launch::Command {
        command: words.next().unwrap(),
        args: words.collect(),
    })
}

fn planned(server: &Server) -> Result<Plan, PlanError> {
    plan(&"serena".parse().unwrap(), server, &environment())
}

#[test]
fn lines_of_runners_become_packages() {
    for (line, package, executable, arguments, shown) in [
        (
            "npx -y @scope/serena@0.5.0 . --x",
            "npm:@scope/serena@0.5.0",
            None,
            ". --x",
            "npx @scope/serena@0.5.0 . --x",
        ),
        ("/usr/bin/npx serena", "npm:serena", None, "", "npx serena"),
        (
            "npx --yes --quiet -- serena -- -y",
            "npm:serena",
            None,
            "-- -y",
            "npx serena -- -y",
        ),
        (
            "npx -p serena@1.0.0 run -p",
            "npm:serena@1.0.0",
            Some("run"),
            "-p",
            "npx --package=serena@1.0.0 run -p",
        ),
        (
            "npx --package=serena run",
            "npm:serena",
            Some("run"),
            "",
            "npx --package=serena run",
        ),
        (
            "npm exec --yes -- serena@^1 -x",
            "npm:serena@^1",
            None,
            "-x",
            "npm exec -- serena@^1 -x",
        ),
        (
            "npm x serena a -- -x",
            "npm:serena",
            None,
            "a -x",
            "npm exec -- serena a -x",
        ),
        (
            "uvx serena==1.0 --from x",
            "pypi:serena==1.0",
            None,
            "--from x",
            "uvx serena==1.0 --from x",
        ),
        ("uvx serena@1.0", "pypi:serena==1.0", None, "", "uvx serena==1.0"),
        (
            "uvx --python 3.12 --from serena[a]>=2 run",
            "pypi:serena[a]>=2",
            Some("run"),
            "",
            "uvx --python 3.12 --from 'serena[a]>=2' run",
        ),
        (
            "uv tool run --from=serena run -q",
            "pypi:serena",
            Some("run"),
            "-q",
            "uv tool run --from serena run -q",
        ),
        (
            "pipx run --spec serena==1.0 run x",
            "pypi:serena==1.0",
            Some("run"),
            "x",
            "pipx run --spec serena==1.0 run x",
        ),
        (
            "npx serena@${VERSION} ${TOKEN}",
            "npm:serena@1.2.3",
            None,
            "hunter2",
            "npx serena@1.2.3 '${TOKEN}'",
        ),
    ] {
        let plan = planned(&command(line)).unwrap();
        let found = plan.package().unwrap();
        assert_eq!(found.to_string(), package, "{line}");
        assert_eq!(found.executable(), executable, "{line}");
        assert_eq!(plan.arguments().join(" "), arguments, "{line}");
        assert_eq!(plan.shown(None, 0).install, shown, "{line}");
    }
}

#[test]
fn everything_else_is_a_plain_command() {
    for (line, program) in [
        ("docker run -i x", "docker"),
        ("node ./server.js", "node"),
        ("./bin/server", "/project/./bin/server"),
        ("/opt/server", "/opt/server"),
        ("uv run server.py", "uv"),
        ("npm start", "npm"),
        ("bunx serena", "bunx"),
    ] {
        let plan = planned(&command(line)).unwrap();
        assert_eq!(
            plan.source(),
            &PlanSource::Command {
                program: program.into()
            }
        );
        assert_eq!(plan.shown(None, 0).install, line);
        assert_eq!(plan.catalog_key(), plan.digest());
    }
}

#[test]
fn what_is_not_understood_is_an_error_and_never_a_guess() {
    let mut said = String::new();
    for line in [
        "npx --registry=http://a.test serena",
        "npx -c serena",
        "npx",
        "npx -y",
        "npx -p serena",
        "npx -p",
        "npx -p a -p b c",
        "npx ./local",
        "npx git+https://a.test/x",
        "npx serena@npm:other@1",
        "npm exec serena --x",
        "uvx --with ./other serena",
        "uvx --with",
        "uvx --from git+https://a.test/x serena",
        "uvx --python /bin/sh serena",
        "pipx run server.py",
        "npx ${EVIL} serena",
        "npx x${TOKEN}:${TOKEN}",
        "npx ${UNSET}",
    ] {
        let error = render_hinted(&planned(&command(line)).unwrap_err());
        assert!(!error.contains("hunter2"), "{error}");
        let lines: Vec<&str> = error
            .lines()
            .take_while(|line| !line.is_empty())
            .map(str::trim)
            .collect();
        let _ = writeln!(said, "{line}\n  {}", lines.join("; "));
    }
    insta::assert_snapshot!(said, @r"
    npx --registry=http://a.test serena
      `serena`: pml does not know the option `--registry` of `npx`
    npx -c serena
      `serena`: pml does not know the option `-c` of `npx`
    npx
      `serena`: `npx` is not told what to run
    npx -y
      `serena`: `npx` is not told what to run
    npx -p serena
      `serena`: `npx` is not told what to run
    npx -p
      `serena`: the option `-p` of `npx` has no value
    npx -p a -p b c
      `serena`: `npx` is given a second package `b`; a server has one
    npx ./local
      `serena` names no package that pml can install; caused by: `./local` is not a package of a registry
    npx git+https://a.test/x
      `serena` names no package that pml can install; caused by: `git+https://a.test/x` is not a package of a registry
    npx serena@npm:other@1
      `serena` names no package that pml can install; caused by: `serena@npm:other@1` is not a package of a registry
    npm exec serena --x
      `serena`: pml does not know the option `--x` of `npm exec`
    uvx --with ./other serena
      `serena` names no package that pml can install; caused by: `./other` is not a package of a registry
    uvx --with
      `serena`: the option `--with` of `uvx` has no value
    uvx --from git+https://a.test/x serena
      `serena` names no package that pml can install; caused by: `git+https://a.test/x` is not a package of a registry
    uvx --python /bin/sh serena
      `serena` names no package that pml can install; caused by: `/bin/sh` is not a Python version such as `3.12`
    pipx run server.py
      `serena` names no package that pml can install; caused by: `server.py` is not a package of a registry
    npx ${EVIL} serena
      `serena`: pml does not know the option `${EVIL}` of `npx`
    npx x${TOKEN}:${TOKEN}
      `serena`: `x${TOKEN}:${TOKEN}` does not expand to a package that pml can install
    npx ${UNSET}
      cannot expand the declaration of `serena`; caused by: the environment variable `UNSET` is not set
    ");
}

#[test]
fn what_is_installed_beside_a_package_is_part_of_it() {
    let shown = |line: &str| planned(&command(line)).unwrap().shown(None, 0).install;
    let expected = "uvx --with 'a[x]>=1,<2' --with b serena==1 --verbose";
    let line = "uvx -w b --with a[x]>=1,<2 --with=b@latest serena==1 --verbose";
    assert_eq!(shown(line), expected);
    let key = |line: &str| planned(&command(line)).unwrap().catalog_key().clone();
    assert_ne!(key("uvx --with b serena==1"), key("uvx serena==1"));
    assert_eq!(key("uvx --with b serena==1"), key("uvx -w b serena==1"));
}

#[test]
fn an_explicit_package_is_shown_as_the_line_that_would_run_it() {
    let explicit = |package: &str| {
        server(Launch::Package {
            package: package.to_owned(),
            args: vec!["a b".to_owned()],
        })
    };
    assert_eq!(
        planned(&explicit("npm:@scope/serena@1.0.0"))
            .unwrap()
            .shown(None, 0)
            .install,
        "npx @scope/serena@1.0.0 'a b'"
    );
    assert_eq!(
        planned(&explicit("pypi:serena[x]==1"))
            .unwrap()
            .shown(None, 0)
            .install,
        "uvx 'serena[x]==1' 'a b'"
    );
    assert!(matches!(
        planned(&explicit("serena")),
        Err(PlanError::Package { .. })
    ));
}

#[test]
fn a_person_sees_the_exact_version_once_it_is_known() {
    let mut server = command("npx -y @scope/serena ${TOKEN}");
    server.allow_scripts = true;
    server
        .env
        .insert("NODE_OPTIONS".to_owned(), "--require ./evil.js".to_owned());
    server.env.insert("API_KEY".to_owned(), "${TOKEN}".to_owned());
    let plan = planned(&server).unwrap();
    let told = |text: &str| text.parse().unwrap();
    let resolved = Resolved {
        integrity: Some("sha512-x".to_owned()),
        published: Some(told("1970-01-01T00:00:00Z")),
        left_out: Some(NewerVersion {
            version: "0.6.0".to_owned(),
            published: told("1970-01-02T22:00:00Z"),
        }),
        ..Resolved::version("0.5.0")
    };
    let two_days = 2 * 24 * 60 * 60 * 1000;
    assert_eq!(
        plan.shown(Some(&resolved), two_days),
        ShownDependency {
            name: "serena".to_owned(),
            version: Some("0.5.0".to_owned()),
            install: "NODE_OPTIONS='--require ./evil.js' npx @scope/serena@0.5.0 '${TOKEN}'".to_owned(),
            integrity: Some("sha512-x".to_owned()),
            scripts: true,
            surroundings: Box::new(Surroundings {
                cwd: None,
                env: vec!["API_KEY".to_owned(), "NODE_OPTIONS".to_owned()],
                env_file: None,
            }),
            installation: Box::new(ShownInstallation {
                published: Some("1970-01-01T00:00:00Z".to_owned()),
                age: Some("2 days ago".to_owned()),
                left_out: Some(
                    "the newer version 0.6.0 was published 2 hours ago and is left out".to_owned()
                ),
                ..ShownInstallation::default()
            }),
            remote: None,
        }
    );
    assert_eq!(plan.shown(None, 0).version, None);
    assert_eq!(plan.variables()["API_KEY"], "hunter2");
    assert!(!format!("{plan:?}").contains("hunter2"));
}

#[test]
fn a_person_sees_where_a_server_runs_unless_it_is_the_directory_of_its_declaration() {
    let base = command("./server");
    let cwd = |cwd: &str| {
        let server = Server {
            cwd: base.directory.join(cwd),
            ..base.clone()
        };
        planned(&server).unwrap().shown(None, 0).surroundings.cwd
    };
    for same in ["", ".", "./."] {
        assert_eq!(cwd(same), None, "{same}");
    }
    let shown = |text: &str| Some(base.directory.join(text).display().to_string());
    for other in ["sub", "sub/sub", "/tmp", "..", "sub/../..", "sub/.."] {
        assert_eq!(cwd(other), shown(other), "{other}");
    }
}

#[test]
fn a_variable_that_steers_the_code_is_shown_with_its_value_and_every_other_by_its_name() {
    let mut server = command("./server");
    for (name, value) in [
        ("PYTHONUSERBASE", "/evil"),
        ("HOME", "/evil"),
        ("PERL5LIB", "/evil"),
        ("XDG_CONFIG_HOME", "/evil"),
        ("LD_BIND_NOW", "1"),
        ("TOKEN", "hunter2"),
        ("A, B", "x"),
    ] {
        server.env.insert(name.to_owned(), value.to_owned());
    }
    let shown = planned(&server).unwrap().shown(None, 0);
    assert_eq!(
        shown.install,
        "HOME=/evil LD_BIND_NOW=1 PERL5LIB=/evil PYTHONUSERBASE=/evil XDG_CONFIG_HOME=/evil ./server"
    );
    assert_eq!(
        shown.surroundings.env,
        [
            "'A, B'",
            "HOME",
            "LD_BIND_NOW",
            "PERL5LIB",
            "PYTHONUSERBASE",
            "TOKEN",
            "XDG_CONFIG_HOME"
        ]
    );
}

#[test]
fn an_approval_is_bound_to_everything_declared_and_to_no_value_of_the_environment() {
    let base = command("npx serena@1.0.0 ${TOKEN}");
    let digest = |server: &Server| planned(server).unwrap().digest().clone();
    let mut others = vec![
        command("npx serena@1.0.0"),
        command("npx serena@1.0.1 ${TOKEN}"),
        command("npx -y serena@1.0.0 ${TOKEN}"),
    ];
    let mut change = |change: fn(&mut Server)| {
        let mut server = base.clone();
        change(&mut server);
        others.push(server);
    };
    change(|server| server.allow_scripts = true);
    change(|server| server.directory = "/other".into());
    change(|server| server.cwd = "/other".into());
    change(|server| drop(server.env.insert("A".to_owned(), "b".to_owned())));
    change(|server| drop(server.env.insert("A".to_owned(), "c".to_owned())));
    let mut digests: Vec<Digest> = others.iter().map(digest).collect();
    digests.push(digest(&base));
    let count = digests.len();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), count);

    let tomorrow = Environment::new([("TOKEN", "changed")], "/elsewhere");
    let name = "serena".parse().unwrap();
    assert_eq!(plan(&name, &base, &tomorrow).unwrap().digest(), &digest(&base));
    assert_ne!(
        plan(&"other".parse().unwrap(), &base, &tomorrow)
            .unwrap()
            .digest(),
        &digest(&base)
    );
}

#[test]
fn remembered_tools_follow_the_package_and_not_the_project() {
    let key = |server: &Server| planned(server).unwrap().catalog_key().clone();
    let mut elsewhere = command("npx -y serena@1.0.0 .");
    elsewhere.directory = "/other".into();
    elsewhere.cwd = "/other".into();
    assert_eq!(key(&command("npx serena@1.0.0 .")), key(&elsewhere));
    assert_ne!(
        key(&command("npx serena@1.0.0 .")),
        key(&command("npx serena@1.0.0"))
    );
    assert_ne!(key(&command("npx serena")), key(&command("uvx serena")));
    assert_ne!(
        key(&command("npx serena@1.0.0")),
        key(&command("npx serena@1.1.0"))
    );
}

fn remote(url: &str, headers: &[(&str, &str)]) -> Server {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    server(Launch::Remote {
        url: url.to_owned(),
        headers,
    })
}

#[test]
fn a_server_elsewhere_is_shown_by_its_origin_and_the_names_of_its_headers() {
    let plan = planned(&remote(
        "https://example.com/mcp?key=hunter2",
        &[("X-Key", "hunter2"), ("Authorization", "Bearer ${TOKEN}")],
    ))
    .unwrap();
    let shown = plan.shown(None, 0);
    assert_eq!(
        (
            shown.install.as_str(),
            shown.version,
            shown.integrity,
            shown.scripts
        ),
        (
            "https://example.com/mcp with the headers authorization, x-key",
            None,
            None,
            false
        )
    );
    assert_eq!((plan.package(), plan.catalog_key()), (None, plan.digest()));
    assert!(!format!("{plan:?}").contains("hunter2"), "{plan:?}");
    let error = planned(&remote("https://${TOKEN}:x@example.com", &[])).unwrap_err();
    assert!(!render_hinted(&error).contains("hunter2"), "{error}");
}

#[test]
fn the_approval_of_a_server_elsewhere_is_bound_to_its_declaration_and_its_origin() {
    let name: DependencyName = "web".parse().unwrap();
    let digest = |server: &Server, environment: &Environment| {
        plan(&name, server, environment).unwrap().digest().clone()
    };
    let today = environment();
    let base = remote(
        "https://${HOST:-a.example}/mcp",
        &[("Authorization", "Bearer ${TOKEN}")],
    );
    let tomorrow = Environment::new([("TOKEN", "another")], "/");
    assert_eq!(digest(&base, &tomorrow), digest(&base, &today));
    let elsewhere = Environment::new([("TOKEN", "hunter2"), ("HOST", "b.example")], "/");
    assert_ne!(digest(&base, &elsewhere), digest(&base, &today));
    for other in [
        remote(
            "https://${HOST:-a.example}/other",
            &[("Authorization", "Bearer ${TOKEN}")],
        ),
        remote(
            "https://${HOST:-a.example}/mcp",
            &[("Authorization", "Basic ${TOKEN}")],
        ),
        remote("https://${HOST:-a.example}/mcp", &[("X-Key", "Bearer ${TOKEN}")]),
        remote("https://${HOST:-a.example}/mcp", &[]),
    ] {
        assert_ne!(digest(&other, &today), digest(&base, &today));
    }
}

#[test]
fn a_launch_differs_by_what_it_runs_and_not_by_its_version_or_the_spelling_of_its_runner() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let package = |text: &str, args: &str| {
        server(Launch::Package {
            package: text.to_owned(),
            args: words(args),
        })
    };
    let remote = |url: &str| {
        server(Launch::Remote {
            url: url.to_owned(),
            headers: BTreeMap::new(),
        })
    };
    let name = "serena".parse().unwrap();
    for (accepted, now, lines) in [
        (
            "npx -y hello@1.0.0 --flag",
            command("npx hello@1.1.0 --flag"),
            vec![],
        ),
        (
            "npx -y hello --flag",
            command("/opt/bin/npm exec -- hello@2.0.0 --flag"),
            vec![],
        ),
        ("npm:hello@1.0.0 --flag", command("npx hello --flag"), vec![]),
        ("npx hello --flag", package("npm:hello@1.0.0", "--flag"), vec![]),
        ("uvx hello==1", command("uv tool run hello"), vec![]),
        (
            "npx hello@1.0.0",
            command("/tmp/evil"),
            vec!["- npx hello@1.0.0", "+ /tmp/evil"],
        ),
        (
            "npx hello@1.0.0",
            command("npx hello@1.0.0 --evil"),
            vec!["- npx hello@1.0.0", "+ npx hello@1.0.0 --evil"],
        ),
        (
            "npx hello@1.0.0",
            command("npx --package=hello@1.0.0 other"),
            vec!["- npx hello@1.0.0", "+ npx --package=hello@1.0.0 other"],
        ),
        (
            "uvx hello",
            command("uvx --with evil hello"),
            vec!["- uvx hello", "+ uvx --with evil hello"],
        ),
        (
            "npx hello@1.0.0",
            remote("https://example.com/mcp?key=hunter2"),
            vec![
                "- the command npx hello@1.0.0",
                "+ the address https://example.com/mcp",
            ],
        ),
        (
            "https://example.com/mcp",
            remote("https://example.com/mcp"),
            vec![],
        ),
        (
            "https://example.com/mcp",
            command("https://example.com/mcp"),
            vec![
                "- the address https://example.com/mcp",
                "+ the command https://example.com/mcp",
            ],
        ),
        (
            "https://example.com/mcp?key=1",
            remote("https://example.com/mcp?key=2"),
            vec![
                "! what follows the `?` of its address is not what was accepted; it may hold a key and is not shown",
            ],
        ),
        (
            "https://example.com/mcp",
            remote("https://example.net/mcp"),
            vec!["- https://example.com/mcp", "+ https://example.net/mcp"],
        ),
        // Words that do not say what they are.
        ("${ADDRESS}", remote("${ADDRESS}"), vec![]),
    ] {
        let change = launch_change(&name, &now, &words(accepted), None, &environment());
        let told = change.map(|change| change.lines()).unwrap_or_default();
        assert_eq!(told, lines, "{accepted} and {:?}", now.launch);
    }
    assert_eq!(
        launch_change(&name, &command("/tmp/evil"), &[], None, &environment()),
        None
    );
}
