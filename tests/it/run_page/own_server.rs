//! The page of a run that no `pml serve` serves: it says what is missing, and what is in the way of a `pml serve`.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::run::question;
use crate::run::scene::Scene;
use crate::support::messages_api::Turn;
use crate::support::world::{stderr, stdout};

#[test]
fn a_run_that_serves_its_page_itself_says_that_channels_need_pml_serve() {
    let Some(scene) = Scene::scripted([question(), Turn::text("Postgres it is.")]) else {
        return;
    };
    scene.world.set("BROWSER", "/bin/true");
    scene.configure_user(&json!({ "channels": {
        "telegram": { "token": "${TELEGRAM_TOKEN}", "people": [1], "apiUrl": "http://127.0.0.1:9" },
        "ntfy": { "server": "http://127.0.0.1:9", "topic": "${NTFY_TOPIC}" },
    } }));
    let run = scene.start(&["--web", "ask me"]);
    let code = scene.asking();
    // The one server of the user is that of the run, and this is not called `pml serve`.
    let refused = scene.world.run(&["serve"]);
    assert_eq!(refused.status.code(), Some(1));
    let told = stderr(&refused);
    assert!(
        told.contains("`pml run --web` serves the page, as process "),
        "{told}"
    );
    assert!(
        told.contains("hint: channels are connected and late answers resumed by `pml serve` alone"),
        "{told}"
    );
    let json: Value = serde_json::from_str(&stdout(&scene.world.run(&["serve", "--json"]))).unwrap();
    assert_eq!(json["command"], "run");
    scene.say(&["answer", &code, "pg"]);
    let ended = run.ended().with(0);
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        shown.contains("Telegram, ntfy are not connected: channels are while `pml serve` runs"),
        "{shown}"
    );
}
