//! Reads what a person types, by a thread of its own: a terminal cannot be waited for otherwise.
//!
//! The terminal gives every key as it is pressed, and echoes none: what is typed is drawn with the rest. Ctrl-C, Ctrl-Z and
//! Ctrl-S mean what they always do.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use super::editor::{Editor, Keyed};

/// How much is read at once.
const PORTION: usize = 4 * 1024;

/// How a person can type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyboard {
    /// Key by key.
    Keys,
    /// Line by line, on a terminal that draws nothing but lines.
    Lines,
    /// Not at all.
    None,
}

/// What a person types.
pub(super) struct Typing {
    bytes: Option<mpsc::Receiver<Vec<u8>>>,
    editor: Editor,
    mode: Option<KeyMode>,
}

impl Typing {
    /// Begins to read.
    pub(super) fn begin(keyboard: Keyboard) -> Self {
        let mode = match keyboard {
            Keyboard::Keys => KeyMode::enter(),
            Keyboard::Lines | Keyboard::None => None,
        };
        let bytes = (keyboard != Keyboard::None).then(|| {
            let (sender, bytes) = mpsc::channel(16);
            std::thread::spawn(move || {
                let mut read = vec![0; PORTION];
                loop {
                    match rustix::io::read(rustix::stdio::stdin(), &mut read) {
                        Err(rustix::io::Errno::INTR) => {}
                        Ok(length) if length > 0 => {
                            if sender.blocking_send(read[..length].to_vec()).is_err() {
                                return;
                            }
                        }
                        // The terminal is gone, or says that nothing more comes.
                        Ok(_) | Err(_) => return,
                    }
                }
            });
            bytes
        });
        Self {
            bytes,
            editor: Editor::default(),
            mode,
        }
    }

    /// Returns the line so far.
    pub(super) fn line(&self) -> &str {
        self.editor.line()
    }

    /// Waits for keys and returns what they mean; for ever where nobody types.
    pub(super) async fn next(&mut self) -> Vec<Keyed> {
        let Some(bytes) = &mut self.bytes else {
            return std::future::pending().await;
        };
        // Also after the key that says that nothing more comes: what is asked later can still be answered.
        if let Some(bytes) = bytes.recv().await {
            return self.editor.feed(&bytes);
        }
        self.bytes = None;
        vec![Keyed::End]
    }

    /// Takes the terminal again, which a shell had meanwhile.
    pub(super) fn resume(&self) {
        if let Some(mode) = &self.mode {
            mode.set();
        }
    }

    /// Gives the terminal back as it was.
    pub(super) fn end(&mut self) {
        self.mode = None;
    }
}

/// A terminal that gives every key; dropping it makes it as it was.
struct KeyMode {
    before: Termios,
}

impl KeyMode {
    fn enter() -> Option<Self> {
        let before = tcgetattr(rustix::stdio::stdin()).ok()?;
        let mode = Self { before };
        mode.set();
        Some(mode)
    }

    fn set(&self) {
        let mut keys = self.before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // Else Ctrl-V would wait for one more key.
        keys.local_modes.remove(LocalModes::IEXTEN);
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &keys);
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
