//! Lines of the client that cannot be read: whoever waits for one is told, so that nobody waits for ever.

use bytes::Bytes;

use crate::protocol::{Json, Outcome, Remains};
use crate::stdio::conversation::Conversation;
use crate::stdio::era::Fault;

impl Conversation {
    /// Takes what is left of a line that cannot be read, and what is wrong with it.
    ///
    /// A request is answered with the fault. An answer is that of somebody who asked through pml: they get the
    /// error, and the client, which asked nothing, gets no word.
    pub(crate) fn unread(&self, remains: Remains, fault: Fault) {
        match remains {
            Remains::Answer(id) => self.answered_badly(&id, &fault),
            Remains::Either(id) if self.inquiries().is_open(&id) => self.answered_badly(&id, &fault),
            Remains::Request(id) | Remains::Either(id) => self.respond(&id, fault.into()),
            Remains::Notification | Remains::Nothing => self.respond("null", fault.into()),
        }
    }

    fn answered_badly(&self, id: &str, fault: &Fault) {
        let message = format!("the client's answer cannot be used: {}", fault.message);
        let error = Bytes::from(Fault::new(Fault::INTERNAL, message).to_json());
        if let Some(raw) = std::str::from_utf8(&error).ok().and_then(Json::parse) {
            self.answered(&error, id, &Outcome::Error(raw));
        }
    }
}
