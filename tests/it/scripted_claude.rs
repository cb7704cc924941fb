//! What the host of pml relies on in the real Claude Code, with a script for a model.

#[expect(dead_code, reason = "the tests that use the rest come next")]
mod host;

use pretty_assertions::assert_eq;

use crate::support::messages_api::{Gate, MessagesApi, Turn};
use host::{Session, Start};

#[test]
fn a_text_is_streamed_while_it_is_said_and_ends_with_success() {
    let gate = Gate::new();
    let said = Turn::streamed("Hello, whoever", 4)
        .and_wait(&gate)
        .and_text(" you are.");
    let Some(session) = Session::with(MessagesApi::start([said])) else {
        return;
    };
    let mut host = session.start(Start::New);
    host.user("Hello");
    gate.wait_until_reached();
    host.until("the fourth delta", |line| line["event"]["delta"]["text"] == "er");
    gate.release();
    let result = host.result();
    assert_eq!(
        [&result["subtype"], &result["stop_reason"], &result["result"]],
        ["success", "end_turn", "Hello, whoever you are."]
    );
    let deltas = host
        .seen
        .iter()
        .filter_map(|line| line["event"]["delta"]["text"].as_str());
    assert_eq!(
        deltas.collect::<Vec<_>>(),
        ["Hell", "o, w", "hoev", "er", " you are."]
    );
    assert_eq!(host.close().code(), Some(0));
}
