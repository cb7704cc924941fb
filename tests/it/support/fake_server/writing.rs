//! How the fake server writes: well, or as sloppily as servers have been seen to.

use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

/// One thread writes at a time; `None` once stdout was closed.
static STDOUT: Mutex<Option<File>> = Mutex::new(None);
/// What is wrong with every message.
static HABIT: Mutex<Habit> = Mutex::new(Habit::None);
/// Whether nothing was written yet.
static FIRST: AtomicBool = AtomicBool::new(true);

/// What is wrong with every message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    None,
    /// Lines end with CR and LF.
    Crlf,
    /// A byte order mark comes before the first line.
    Bom,
    /// Each line comes in pieces that end within a character.
    Pieces,
    /// A blank line comes before each message.
    Blank,
    /// A result comes with `"error": null`, an error with `"result": null`.
    NullError,
    /// An id `1` comes back as `1.0`.
    FloatIds,
    /// An answer comes alone in an array.
    Batch,
    /// An answer to a question that nobody asked comes before each one.
    Strangers,
    /// Each answer comes twice.
    Twice,
    /// An answer has its id at its end, as servers on the TypeScript SDK write it.
    IdLast,
}

impl Habit {
    /// Reads the word of the command line.
    pub(crate) fn named(word: &str) -> Option<Self> {
        Some(match word {
            "crlf" => Self::Crlf,
            "bom" => Self::Bom,
            "pieces" => Self::Pieces,
            "blank" => Self::Blank,
            "null-error" => Self::NullError,
            "float-ids" => Self::FloatIds,
            "batch" => Self::Batch,
            "strangers" => Self::Strangers,
            "twice" => Self::Twice,
            "id-last" => Self::IdLast,
            _ => return None,
        })
    }

    /// Takes up the habit.
    pub(crate) fn adopt(self) {
        *HABIT.lock().unwrap() = self;
    }

    fn current() -> Self {
        *HABIT.lock().unwrap()
    }
}

/// Takes stdout away from everybody else: a descriptor of its own, so that it can be closed for real.
pub(crate) fn open() {
    *STDOUT.lock().unwrap() = Some(File::from(rustix::io::dup(rustix::stdio::stdout()).unwrap()));
    let nothing = File::options().write(true).open("/dev/null").unwrap();
    rustix::stdio::dup2_stdout(&nothing).unwrap();
}

/// Closes stdout.
pub(crate) fn close() {
    *STDOUT.lock().unwrap() = None;
}

/// Returns a second descriptor of stdout.
pub(crate) fn stdout() -> File {
    STDOUT.lock().unwrap().as_ref().unwrap().try_clone().unwrap()
}

/// Answers with the bytes of a value that is `kind`: `result` or `error`.
pub(crate) fn reply_raw(id: &Value, kind: &str, value: &str) {
    let habit = Habit::current();
    let id = match (habit, id.as_u64()) {
        (Habit::FloatIds, Some(number)) => format!("{number}.0"),
        _ => id.to_string(),
    };
    let other = match (habit, kind) {
        (Habit::NullError, "result") => r#","error":null"#,
        (Habit::NullError, _) => r#","result":null"#,
        _ => "",
    };
    let line = match habit {
        Habit::IdLast => format!(r#"{{"{kind}":{value},"jsonrpc":"2.0","id":{id}}}"#),
        _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"{kind}":{value}{other}}}"#),
    };
    match habit {
        Habit::Batch => write_line(&format!("[{line}]")),
        Habit::Strangers => {
            for stranger in ["987654321", "\"nobody\"", "null", "-1"] {
                write_line(&format!(
                    r#"{{"jsonrpc":"2.0","id":{stranger},"result":{{"content":[]}}}}"#
                ));
            }
            write_line(&line);
        }
        Habit::Twice => {
            write_line(&line);
            write_line(&line);
        }
        _ => write_line(&line),
    }
}

/// Sends a notification.
pub(crate) fn notify(method: &str, params: &Value) {
    write_line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
}

/// Writes a line, as the habit will have it.
pub(crate) fn write_line(line: &str) {
    match Habit::current() {
        Habit::Crlf => write(format!("{line}\r\n").as_bytes()),
        Habit::Bom if FIRST.swap(false, Ordering::SeqCst) => write(format!("\u{feff}{line}\n").as_bytes()),
        Habit::Blank => write(format!("\n  \n{line}\n").as_bytes()),
        Habit::Pieces => write_in_pieces(format!("{line}\n").as_bytes()),
        _ => write(format!("{line}\n").as_bytes()),
    }
}

/// Writes bytes as they are.
pub(crate) fn write(bytes: &[u8]) {
    if let Some(stdout) = STDOUT.lock().unwrap().as_mut() {
        // A client that is gone is seen at the end of stdin.
        let _ = stdout.write_all(bytes);
    }
}

/// Writes so many bytes without a line break, a block at a time.
pub(crate) fn write_endless(bytes: u64) {
    let block = [b'x'; 16384];
    let mut left = usize::try_from(bytes).unwrap();
    while left > 0 {
        let size = left.min(block.len());
        write(&block[..size]);
        left -= size;
    }
}

/// Writes up to the middle of each character that has several bytes, waits a little, and goes on.
fn write_in_pieces(bytes: &[u8]) {
    let mut stdout = STDOUT.lock().unwrap();
    let Some(stdout) = stdout.as_mut() else { return };
    let mut first = 0;
    for (place, byte) in bytes.iter().enumerate() {
        // Bytes that go on with a character begin with the bits 10.
        if byte & 0xC0 == 0x80 {
            let _ = stdout.write_all(&bytes[first..place]);
            std::thread::sleep(Duration::from_millis(2));
            first = place;
        }
    }
    let _ = stdout.write_all(&bytes[first..]);
}
