//! Telegram against an independent imitation of the Bot API from npm, which neither side wrote for the other.

#![expect(
    clippy::disallowed_methods,
    reason = "a test installs and starts the imitation"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::*;
use crate::card::Decision;

/// The package, pinned.
const PACKAGE: &str = "telegram-test-api@4.2.1";

/// Serves the Bot API, and does what a person does: a line of JSON each.
const SCRIPT: &str = r"
const Server = require('telegram-test-api').default || require('telegram-test-api');
const server = new Server({ port: Number(process.argv[1]), host: '127.0.0.1', storage: 'RAM', storeTimeout: 600 });
const say = value => process.stdout.write(JSON.stringify(value) + '\n');
process.stdin.on('end', () => process.exit(0));
server.start().then(() => {
  const client = server.getClient(process.argv[2], { userId: 1, chatId: 1, timeout: 20000 });
  say('ready');
  require('readline').createInterface({ input: process.stdin }).on('line', async line => {
    const { press, message, words } = JSON.parse(line);
    if (press) await client.sendCallback(client.makeCallbackQuery(press, { message }));
    if (words) await client.sendMessage(client.makeMessage(words));
    say(server.storage.botMessages.map(sent => ({ id: sent.messageId, ...sent.message })));
  });
});
";

struct Imitation {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    url: String,
}

impl Imitation {
    /// Installs and starts it; `None` where there is no npm, which the test says.
    fn start() -> Option<Self> {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tmp/telegram-test-api");
        std::fs::create_dir_all(&folder).unwrap();
        if !folder.join("node_modules/telegram-test-api").is_dir() {
            let options = [
                "install",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--prefix",
            ];
            let installed = Command::new("npm")
                .args(options)
                .arg(&folder)
                .arg(PACKAGE)
                .output();
            let is_there = installed.is_ok_and(|output| output.status.success());
            if !is_there {
                let needed = std::env::var("PML_TESTS_REQUIRE_REAL").as_deref() == Ok("1");
                assert!(!needed, "npm cannot install {PACKAGE}");
                eprintln!("skipped: npm cannot install {PACKAGE}");
                return None;
            }
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new("node")
            .args(["-e", SCRIPT, &port.to_string(), CANARY])
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut imitation = Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            url: format!("http://127.0.0.1:{port}"),
            child,
        };
        assert_eq!(imitation.line(), "ready");
        Some(imitation)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("it says {line:?}"))
    }

    /// Does something as the person; returns the messages of the bot as they stand.
    fn person(&mut self, does: &Value) -> Vec<Value> {
        writeln!(self.input, "{does}").unwrap();
        self.line().as_array().unwrap().clone()
    }

    /// Presses the button that shows a text on the last message.
    fn press(&mut self, shows: &str) {
        let sent = self.person(&json!({})).pop().unwrap();
        let data = data_of(&keyboard_of(&sent), shows);
        let chat = json!({ "id": 1, "type": "private" });
        let message = json!({ "message_id": sent["id"], "chat": chat, "reply_markup": keyboard_of(&sent) });
        self.person(&json!({ "press": data, "message": message }));
    }
}

impl Drop for Imitation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keyboard_of(sent: &Value) -> Value {
    match &sent["reply_markup"] {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        keyboard => keyboard.clone(),
    }
}

#[tokio::test]
async fn an_independent_imitation_of_the_bot_api_carries_every_kind_of_answer() {
    let Some(mut imitation) = Imitation::start() else {
        return;
    };
    let bot = telegram(&imitation.url).await;
    let one = open(asking(vec![question(
        "Which db?",
        &["pg", "sqlite"],
        Selection::One,
    )]));
    let reference = bot.send(&one, "1").await.unwrap();
    imitation.press("sqlite");
    let heard = soon(bot.heard()).await.unwrap();
    let picked = |options: &[usize]| Picked {
        options: options.to_vec(),
        text: None,
    };
    assert_eq!(heard.utterance, Utterance::Answers(vec![picked(&[1])]));
    assert_eq!(heard.sender, person("1"));
    bot.update(&reference, &closed(&one, "Answered here: sqlite · 14:03"))
        .await
        .unwrap();
    let sent = imitation.person(&json!({})).pop().unwrap();
    assert!(
        sent["text"]
            .as_str()
            .unwrap()
            .ends_with("Answered here: sqlite · 14:03"),
        "{sent}"
    );
    // A toggle, a restart, another toggle, and the form is sent.
    let several = open(asking(vec![question(
        "Which?",
        &["a", "b", "c"],
        Selection::Several,
    )]));
    bot.send(&several, "1").await.unwrap();
    imitation.press("1 · a");
    imitation.person(&json!({ "words": "go on" }));
    let heard = soon(bot.heard()).await.unwrap();
    assert_eq!(heard.utterance, Utterance::Text("go on".to_owned()));
    drop(bot);
    let bot = telegram(&imitation.url).await;
    imitation.press("3 · c");
    imitation.person(&json!({ "words": "/refuse abcde no" }));
    let heard = soon(bot.heard()).await.unwrap();
    let no = Utterance::Decision(Decision::Abort, Some("no".to_owned()));
    assert_eq!(
        (heard.about, heard.utterance),
        (About::Code("abcde".to_owned()), no)
    );
    imitation.press("Send");
    let heard = soon(bot.heard()).await.unwrap();
    assert_eq!(heard.utterance, Utterance::Answers(vec![picked(&[0, 2])]));
}
