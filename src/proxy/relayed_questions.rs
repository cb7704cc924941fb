//! Questions that the host of this conversation shows, instead of pml.

use super::Proxy;
use crate::protocol::question::{Question, QuestionAnswer};
use crate::relay::RelayError;

impl Proxy {
    /// Tells whether questions go to the host that started this conversation.
    #[must_use]
    pub fn relays_questions(&self) -> bool {
        // The host of a run looks into the store.
        self.0.relay.is_on() && !self.is_in_run()
    }

    /// Puts a question to a person by way of that host; it stands in no store of pml.
    ///
    /// The rules are looked at before each poll, so that switching the tools off ends a question that waits.
    pub async fn relay_question(&self, question: &Question) -> Result<QuestionAnswer, RelayError> {
        let settings = || self.view().map(|view| view.config.ask_user.clone());
        self.0.relay.ask(question, settings).await
    }
}
