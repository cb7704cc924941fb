use std::os::unix::fs::symlink;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Vec<(String, String)> {
    variables_in(text).collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn variables_are_read_as_editors_read_them() {
    assert_eq!(
        read(
            "\u{feff}# A=1\nexport B = 'x y' # why\r\nC=\n1D=x\nE\nF=a=b # c\nG=\"one\\ntwo\"\nH='a\\nb'\n\
             I=\"-----BEGIN\nKEY=x\n-----END\"\nJ=`t'\"`\nK=\"a\\\"b\"\nL='never closed\nM=last"
        ),
        owned(&[
            ("B", "x y"),
            ("C", ""),
            ("F", "a=b"),
            ("G", "one\ntwo"),
            ("H", "a\\nb"),
            ("I", "-----BEGIN\nKEY=x\n-----END"),
            ("J", "t'\""),
            ("K", "a\\\"b"),
            ("L", "'never closed"),
            ("M", "last"),
        ])
    );
}

#[expect(clippy::disallowed_methods, reason = "a test lays out its own files")]
fn write(path: &Path, text: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn result(directory: &Path, declared: &str) -> Result<Vec<(String, String)>, String> {
    let file = VariablesFile::new(directory, declared)?;
    let env = BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]);
    let read = file.read(&env).map_err(|error| error.to_string())?;
    Ok(read.into_iter().collect())
}

#[test]
fn what_is_declared_wins_and_what_steers_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.env");
    write(&path, b"PATH=/evil\nTOKEN=abc\nTOKEN=last\n");
    assert_eq!(result(root.path(), "./a.env"), Ok(owned(&[("TOKEN", "last")])));
    for name in ["NODE_OPTIONS", "LD_PRELOAD", "HOME", "XDG_CONFIG_HOME"] {
        write(&path, format!("TOKEN=abc\n{name}=hidden\n").as_bytes());
        let refused = result(root.path(), "a.env").unwrap_err();
        assert!(
            refused.ends_with(&format!(
                "a.env` sets `{name}`, which decides what runs or what it reaches"
            )),
            "{refused}"
        );
    }
}

#[test]
fn what_is_no_readable_text_is_refused_by_its_name() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write(&at("large.env"), &vec![b'#'; 256 * 1024 + 1]);
    write(&at("bytes.env"), b"A=\xff\n");
    write(&at("zero.env"), b"A=a\0b\n");
    write(&at("folder/x.env"), b"A=1\n");
    rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe.env"), rustix::fs::Mode::RUSR).unwrap();
    symlink(at("folder/x.env"), at("link.env")).unwrap();
    symlink(at("folder"), at("linked")).unwrap();
    for (declared, reason) in [
        ("absent.env", "there is no file `"),
        ("folder", "` is not a regular file"),
        ("pipe.env", "` is not a regular file"),
        ("large.env", "` has more than 256 KiB"),
        ("bytes.env", "` is not a text of variables"),
        ("zero.env", "` is not a text of variables"),
        ("link.env", "` is a link, or below one, and leads to `"),
        ("linked/x.env", "` is a link, or below one, and leads to `"),
        ("folder/../link.env", "` is a link, or below one, and leads to `"),
        (" ", "`envFile` is empty"),
        ("${workspaceFolder}/.env", "no `${…}` is expanded"),
    ] {
        let refused = result(root.path(), declared).unwrap_err();
        assert!(refused.contains(reason), "{declared}: {refused}");
    }
    assert_eq!(result(root.path(), "folder/x.env"), Ok(owned(&[("A", "1")])));
    assert_eq!(result(&at("folder"), "../folder/x.env"), Ok(owned(&[("A", "1")])));
    // Outside the directory the declaration says where it leads.
    assert_eq!(result(&at("folder"), "../link.env"), Ok(owned(&[("A", "1")])));
}

proptest! {
    #[test]
    fn whatever_stands_in_a_file_reading_it_ends(text in "[A-Z=\"'`#\\\\ \r\né]{0,60}") {
        for (name, _) in variables_in(&text) {
            prop_assert!(is_name(&name));
        }
    }
}
