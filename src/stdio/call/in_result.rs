//! A question of a Modern dependency for a Legacy client that shows no forms: it is told in the result, and the
//! answer comes with a continuation.
//!
//! The call waits as data until `pml_continue` brings what a person said; then it is sent again with it, once.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::Calls;
use super::open_call::{OpenCall, token_of};
use super::progress::ProgressReport;
use super::state::{CallState, Open, Relayed};
use crate::protocol::Object;
use crate::protocol::continuation::Continuation;
use crate::proxy::Refusal;
use crate::stdio::ask::in_words::{InputResponses, NamedQuestion, responses};
use crate::stdio::ask::parking::ParkedMatch;
use crate::stdio::ask::wording;
use crate::stdio::client::answer::{error_result, own_result};
use crate::stdio::client::in_flight::UnderWay;
use crate::stdio::era::Era;
use crate::stdio::present;
use crate::stdio::translation::to_server::Input;

impl OpenCall {
    /// Tells the questions of the dependency in place of its result.
    pub(super) fn relay(self: &Arc<Self>, open: &Open, asked: Vec<NamedQuestion>, state: Option<String>) {
        *self.lock() = CallState::Relayed(Relayed {
            keys: asked.iter().map(|(key, _)| key.clone()).collect(),
            state,
            rounds: open.rounds,
        });
        let id = self.calls.park(Arc::clone(self));
        let result = wording::server_asks(self.route.tool.dependency(), id, asked);
        let expected = self.expected_output();
        let answer = present::in_place_of_output(result, expected, self.request.era);
        self.answer(&open.under_way, answer);
    }

    /// Reads what a person said to the questions that were told; `None` where none were.
    fn said(&self, continuation: &Continuation) -> Option<InputResponses> {
        match &*self.lock() {
            CallState::Relayed(relayed) => Some(responses(&relayed.keys, continuation)),
            _ => None,
        }
    }

    /// Sends the call again with what a person said.
    fn relayed(self: &Arc<Self>, under_way: UnderWay, carrier: &Object<'_>, responses: Map<String, Value>) {
        let CallState::Relayed(relayed) = self.end() else {
            return self.answer(&under_way, self.refused(&Refusal::Expired));
        };
        let open = Open {
            under_way,
            token: token_of(carrier),
            report: ProgressReport::default(),
            downstream: 0,
            rounds: relayed.rounds,
        };
        let input = Input {
            responses: Some(Value::Object(responses).to_string()),
            state: relayed.state,
        };
        self.send_again(open, input);
    }
}

impl Calls {
    /// Goes on with a call whose questions were told in a result; `Some` gives back what is no answer to one.
    pub(crate) fn relayed(&self, under_way: UnderWay, carrier: &Object<'_>) -> Option<UnderWay> {
        let Some(Ok(Some(continuation))) = carrier.value("arguments").map(Continuation::parse) else {
            return Some(under_way);
        };
        let Ok(id) = continuation.workflow_id.parse::<Uuid>() else {
            return Some(under_way);
        };
        let mut said = None;
        let found = self.0.parked.take_if(id, Instant::now(), |call| {
            said = call.said(&continuation);
            matches!(said, Some(Ok(_)))
        });
        match (found, said) {
            (ParkedMatch::Wanted(call), Some(Ok(responses))) => call.relayed(under_way, carrier, responses),
            (_, Some(Err(reason))) => {
                let refusal = error_result(&reason, None);
                self.0
                    .link
                    .respond(&under_way.id, own_result(refusal, Era::Legacy));
            }
            _ => return Some(under_way),
        }
        None
    }
}
