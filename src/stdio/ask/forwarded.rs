//! Questions of servers on the ladder: what a server asks its client in the middle of a call.
//!
//! | rung | a Legacy server asks by a request | a Modern server asks by a result |
//! |---|---|---|
//! | a result, brought back by a retry | the newest call that can carry it is parked | the result passes, its state wrapped |
//! | a request while the call is open | under an id of pml; the answer goes to the server | one each (`answer_collection.rs`); then the call is sent again |
//! | the words of a result, answered by a continuation | none: it is declined | the forms of a tool call (`in_words.rs`) |
//!
//! The rung is chosen as for pml's own asks; the call that carries a question is of the folder `call`. Two things stay
//! apart. A question of a server is no workflow: only its client can answer it, its server waits in this process, and
//! so it stands in no inbox. And it is never typed: its bytes pass, but for the label of its server and what names it,
//! so its forms are not rewritten for older clients either.

use std::sync::Arc;

use bytes::Bytes;

use super::answer_collection::AnswerCollection;
use super::in_words::{self, NamedQuestion};
use super::input_required::InputRequired;
use super::ladder::{ClientRoad, Ladder};
use super::server_question::ServerQuestion;
use crate::config::By;
use crate::protocol::{DependencyName, Object, Splice};
use crate::proxy::{Inquiry, Session};
use crate::stdio::client::answer::ResponseBody;
use crate::stdio::client::outstanding::{Collector, Recipient};
use crate::stdio::era::{self, Covered, Era};
use crate::stdio::translation::request::{Method, Request};
use crate::stdio::translation::request_state::RequestState;
use crate::stdio::translation::server_label::{label, labelled};

/// The rung on which questions of a Modern server reach the client of a call.
#[derive(Debug, PartialEq)]
pub(crate) enum Rung {
    /// In the result of the call, but for the questions at these indexes, which the client cannot answer.
    Result { uncovered: Vec<usize> },
    /// By requests while the call is open.
    Requests,
    /// In the words of the call's result.
    Words(Vec<NamedQuestion>),
    /// On none: the client cannot answer what is asked by this method.
    None { method: String },
}

impl Ladder {
    /// Puts a question of a Legacy server to the client.
    pub(crate) fn forward(&self, session: &Session, inquiry: &Arc<Inquiry>) {
        let road = if self.link.is_legacy() {
            let declared = self.link.declared();
            let covered = era::covers(declared.capabilities(), &inquiry.method, text_of(inquiry));
            ClientRoad::of(Era::Legacy, covered)
        } else {
            // What is covered each Modern request says itself.
            ClientRoad::Dialog
        };
        match road {
            ClientRoad::Dialog => session.offer(Arc::clone(inquiry)),
            ClientRoad::Elicitation => self.request(session, inquiry),
            ClientRoad::None => session.decline(inquiry),
        }
    }

    /// Withdraws the question that a Legacy server asked under this raw id of its own.
    pub(crate) fn withdraw(&self, session: &Session, id: &str) {
        if let Some(id) = self.link.outstanding().withdraw(session, id) {
            self.link.withdraw(&id);
        }
    }

    /// Sends a question of a Legacy server to a Legacy client.
    ///
    /// No heartbeat: the server does not say which of its calls it asks for, and can itself report progress on it.
    fn request(&self, session: &Session, inquiry: &Arc<Inquiry>) {
        let object = text_of(inquiry).and_then(Object::parse);
        let token = object.as_ref().and_then(|object| {
            let meta = Object::parse(object.value("_meta")?.get())?;
            Some(meta.value("progressToken")?.get().to_owned())
        });
        let id = self.link.outstanding().register(Recipient::Server {
            session: session.clone(),
            inquiry: Arc::clone(inquiry),
            token,
        });
        let asked = LegacyRequest {
            server: session.dependency(),
            from: Era::Legacy,
            method: &inquiry.method,
        };
        let params = inquiry.params.as_ref().map(|params| asked.params(params, &id));
        self.link
            .request(&id, &inquiry.method, params.into_iter().flatten());
    }

    /// Chooses the rung on which questions of a Modern server reach the client that waits for `request`.
    pub(crate) fn rung(&self, request: &Request, questions: &[ServerQuestion<'_>]) -> Rung {
        match request.era {
            Era::Modern => in_result(capabilities(request).as_deref().unwrap_or("{}"), questions),
            Era::Legacy => {
                let declared = self.link.declared();
                let may_tell = request.method == Method::Call && self.proxy.approvals().by == By::Client;
                match uncovered(declared.capabilities(), questions) {
                    None => Rung::Requests,
                    Some(method) => {
                        let told = may_tell.then(|| in_words::forms(questions)).flatten();
                        told.map_or(Rung::None { method }, Rung::Words)
                    }
                }
            }
        }
    }

    /// Asks a Legacy client what a Modern server wants to know; the answers go to `call`.
    pub(crate) fn collect(
        &self,
        server: &DependencyName,
        questions: &[ServerQuestion<'_>],
        call: &Arc<dyn Collector>,
    ) -> AnswerCollection {
        let patience = self.proxy.approvals().time_to_live;
        let mut collection = AnswerCollection::new(&self.link, server, patience, call);
        for question in questions {
            let Some(key) = question.askable() else { continue };
            let method = question.method();
            let asked = LegacyRequest {
                server,
                from: Era::Modern,
                method: &method,
            };
            let params = question
                .params()
                .map(|params| Bytes::copy_from_slice(params.as_bytes()));
            collection.ask(&self.link, key, call, |id| {
                let params = params.as_ref().map(|params| asked.params(params, id));
                self.link.request(id, &method, params.into_iter().flatten());
            });
        }
        collection
    }
}

/// Tells whether a call of a Modern client can carry a question of a Legacy server in its result.
pub(crate) fn carries(request: &Request, inquiry: &Inquiry) -> Covered {
    if request.era != Era::Modern || !request.method.may_ask() {
        return Covered::No;
    }
    let capabilities = capabilities(request);
    let capabilities = capabilities.as_deref().unwrap_or("{}");
    era::covers(capabilities, &inquiry.method, text_of(inquiry))
}

/// Writes the result that asks a Modern client the questions of a Legacy server, by the names they get here.
pub(crate) fn as_result(
    server: &DependencyName,
    inquiries: &[(String, Arc<Inquiry>)],
    state: &RequestState,
) -> ResponseBody {
    let mut result = InputRequired::default();
    for (key, inquiry) in inquiries {
        let params = inquiry.params.as_deref().map(String::from_utf8_lossy);
        let params = params
            .as_deref()
            .map(|params| labelled(server, &inquiry.method, params));
        result.ask(key, &inquiry.method, params.as_deref());
    }
    result.into_body(state)
}

/// Returns what a Modern request says that its client can answer.
fn capabilities(request: &Request) -> Option<String> {
    let object = Object::parse(request.text())?;
    era::capabilities_of(&object).map(str::to_owned)
}

/// Returns the raw parameters of a Legacy server's question.
fn text_of(inquiry: &Inquiry) -> Option<&str> {
    let params = inquiry.params.as_deref()?;
    std::str::from_utf8(params).ok()
}

/// Finds the questions that can pass in a result: a Modern client declares with every request what it can answer.
///
/// A server of both eras that pml opened by `initialize` knows only what was declared then.
fn in_result(capabilities: &str, questions: &[ServerQuestion<'_>]) -> Rung {
    let is_uncovered = |question: &ServerQuestion<'_>| {
        era::covers(capabilities, &question.method(), question.params()) == Covered::No
    };
    let uncovered: Vec<usize> = (0..questions.len())
        .filter(|index| is_uncovered(&questions[*index]))
        .collect();
    match uncovered.first() {
        Some(first) if uncovered.len() == questions.len() => Rung::None {
            method: questions[*first].method().into_owned(),
        },
        _ => Rung::Result { uncovered },
    }
}

/// Returns the method of the first question that a Legacy client cannot answer.
fn uncovered(capabilities: &str, questions: &[ServerQuestion<'_>]) -> Option<String> {
    let asked = questions.iter().filter(|question| question.askable().is_some());
    asked
        .map(|question| (question.method(), question.params()))
        .find(|(method, params)| {
            ClientRoad::of(Era::Legacy, era::covers(capabilities, method, *params)) == ClientRoad::None
        })
        .map(|(method, _)| method.into_owned())
}

/// A question of a server as a request to a Legacy client.
#[derive(Clone, Copy)]
struct LegacyRequest<'a> {
    server: &'a DependencyName,
    /// The era of the server.
    from: Era,
    method: &'a str,
}

impl LegacyRequest<'_> {
    /// Returns its parameters for the request with this raw id: the bytes of the server, but for label and names.
    fn params(self, params: &Bytes, id: &str) -> Vec<Bytes> {
        let mut splice = Splice::new(params.clone());
        let object = std::str::from_utf8(params).ok().and_then(Object::parse);
        if let Some(object) = object {
            match self.from {
                Era::Legacy => rename_token(&mut splice, &object, id),
                Era::Modern => self.name_page(&mut splice, &object, id),
            }
            if let Some((place, text)) = label(self.server, self.method, &object) {
                splice.replace(place, text);
            }
        }
        splice.into_parts()
    }

    /// Names a question on a page, as a Legacy client requires; the Modern era has no such name.
    fn name_page(self, splice: &mut Splice, params: &Object<'_>, id: &str) {
        const NAME: &str = "elicitationId";
        if self.method == "elicitation/create"
            && params.text("mode").as_deref() == Some("url")
            && params.value(NAME).is_none()
        {
            splice.replace(params.front()..params.front(), format!(r#""{NAME}":{id},"#));
        }
    }
}

/// Puts our id in the place of the server's progress token: progress of the client finds its way back by it.
fn rename_token(splice: &mut Splice, params: &Object<'_>, id: &str) {
    let meta = params.value("_meta").and_then(|raw| Object::parse(raw.get()));
    if let Some((place, meta)) = params.place("_meta").zip(meta)
        && let Some(at) = meta.place("progressToken")
    {
        splice.replace(place.start + at.start..place.start + at.end, id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{"inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"sampling/createMessage"},"c":{"method":"roots/list"},"d":1}}"#;

    fn questions(result: &str) -> Vec<ServerQuestion<'_>> {
        ServerQuestion::all(&Object::parse(result).unwrap())
    }

    #[test]
    fn what_a_modern_client_did_not_declare_does_not_pass() {
        let without = |uncovered: &[usize]| Rung::Result {
            uncovered: uncovered.to_vec(),
        };
        assert_eq!(in_result("{}", &questions(RESULT)), without(&[0, 1, 2]));
        assert_eq!(
            in_result(r#"{"sampling":{}}"#, &questions(RESULT)),
            without(&[0, 2])
        );
        assert_eq!(in_result("{}", &questions("{}")), without(&[]));
        let unknown = r#"{"inputRequests":{"a":{"method":"x/y"}}}"#;
        assert_eq!(in_result("{}", &questions(unknown)), without(&[]));
        let form = r#"{"inputRequests":{"a":{"method":"elicitation/create"}}}"#;
        assert_eq!(
            in_result("{}", &questions(form)),
            Rung::None {
                method: "elicitation/create".to_owned()
            }
        );
    }

    #[test]
    fn a_legacy_client_is_asked_all_or_nothing_of_what_can_be_asked() {
        assert_eq!(
            uncovered(r#"{"elicitation":{},"sampling":{}}"#, &questions(RESULT)).as_deref(),
            Some("roots/list")
        );
        let all = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;
        assert_eq!(uncovered(all, &questions(RESULT)), None);
    }

    #[test]
    fn a_question_keeps_its_bytes_but_for_label_and_names() {
        let server = "fake".parse().unwrap();
        let asked = |from, params: &'static str| {
            let asked = LegacyRequest {
                server: &server,
                from,
                method: "elicitation/create",
            };
            let params = Bytes::from_static(params.as_bytes());
            String::from_utf8(asked.params(&params, "\"pml-1\"").concat()).unwrap()
        };
        assert_eq!(
            asked(Era::Modern, r#"{"mode":"url", "url":"a:b"}"#),
            r#"{"elicitationId":"pml-1","message":"[fake]","mode":"url", "url":"a:b"}"#
        );
        assert_eq!(
            asked(Era::Modern, r#"{"message":"m","mode":"url","elicitationId":"x"}"#),
            r#"{"message":"[fake] m","mode":"url","elicitationId":"x"}"#
        );
        assert_eq!(
            asked(
                Era::Legacy,
                r#"{"_meta":{ "progressToken":7},"message":"m","n":1.0}"#
            ),
            r#"{"_meta":{ "progressToken":"pml-1"},"message":"[fake] m","n":1.0}"#
        );
        assert_eq!(asked(Era::Modern, "[1.0]"), "[1.0]");
    }
}
