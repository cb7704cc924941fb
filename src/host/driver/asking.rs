//! The asks of a driven run: put to a person, waited for, answered.

use std::collections::BTreeSet;

use super::super::asks::{Asked, Told, WaitingAsk};
use super::super::error::RunError;
use super::super::hosted_run::Control;
use super::super::line::AgentRequest;
use super::super::machine::{Event, OpenAsk, Phase};
use super::super::record::KeptAskKind;
use super::super::run_input::RunInput;
use super::super::run_line::{AskOutcome, OwnLine};
use super::{Driver, Happened};
use crate::proxy::WorkflowId;

impl Driver {
    pub(super) fn withdraw(&self, ask: &WaitingAsk) {
        let (asks, workflow) = (self.asks.clone(), ask.workflow.id);
        self.tasks.spawn(async move { asks.withdraw(workflow).await });
    }

    /// Has a request of the agent decided; the store and the rules are not waited for here.
    pub(super) fn asked(&mut self, id: String, request: AgentRequest) {
        if let AgentRequest::Hook {
            transcript: Some(path),
            ..
        } = &request
        {
            self.record.transcript = Some(path.into());
        }
        let kept = request.call().and_then(|call| self.record.ask_of(call)).cloned();
        let (asks, decided) = (self.asks.clone(), self.decided.clone());
        self.deciding.insert(id.clone());
        self.tasks.spawn(async move {
            let asked = asks.put(id.clone(), request, kept).await;
            let _ = decided.send(Happened::Put { request: id, asked });
        });
    }

    pub(super) async fn learn(&mut self, what: Happened) -> Result<(), RunError> {
        match what {
            Happened::Put { request, asked } => match (self.deciding.remove(&request), asked) {
                (true, Asked::Reply(line)) => self.agent.write(line),
                (true, Asked::Unasked { reply, note: text }) => {
                    self.journal.own(OwnLine::Note { text }).await;
                    self.agent.write(reply);
                }
                (true, Asked::Waits(ask)) => self.wait_for_person(*ask).await?,
                // The agent has taken it back meanwhile.
                (false, Asked::Reply(_) | Asked::Unasked { .. }) => {}
                (false, Asked::Waits(ask)) => self.withdraw(&ask),
            },
            Happened::Decided { request } => self.decided(&request).await?,
            Happened::Answer { request, told } => self.deliver(&request, told).await?,
            Happened::ServerAsks(open) => self.see_server_asks(open).await?,
            Happened::Inputs(inputs) => {
                self.looking = false;
                for input in inputs {
                    self.obey(match input {
                        RunInput::Message(message) => Control::Message(message),
                        RunInput::Interrupt => Control::Interrupt,
                        RunInput::Stop => Control::Stop,
                    })
                    .await?;
                }
            }
        }
        Ok(())
    }

    pub(super) async fn wait_for_person(&mut self, ask: WaitingAsk) -> Result<(), RunError> {
        let (request, id) = (ask.request.clone(), ask.workflow.id);
        let open = OpenAsk {
            request: request.clone(),
            tool_use: ask.kept.call.clone(),
            road: ask.road(),
        };
        if !self.record.asks.iter().any(|kept| kept.workflow == id) {
            self.record.asks.push(ask.kept.clone());
        }
        self.save().await?;
        let line = OwnLine::Ask {
            id,
            code: ask.workflow.code.to_string(),
            call: ask.kept.call.clone(),
        };
        self.journal.own(line).await;
        self.waiting.insert(request.clone(), ask);
        self.step(Event::Asked(open)).await?;
        let (asks, decided) = (self.asks.clone(), self.decided.clone());
        let ended = self.agent.ended();
        self.tasks.spawn(async move {
            tokio::select! {
                () = asks.decided(id) => {
                    let _ = decided.send(Happened::Decided { request });
                }
                () = ended.cancelled() => {}
            }
        });
        Ok(())
    }

    /// Has the line written that answers a request, unless its call is being put off: its answer is for the next process.
    pub(super) async fn decided(&mut self, request: &str) -> Result<(), RunError> {
        let Some(ask) = self.waiting.get(request) else {
            return Ok(());
        };
        if self.machine.is_put_off(request) || matches!(self.machine.phase(), Phase::Ending | Phase::Over) {
            return Ok(());
        }
        let (asks, decided, ask) = (self.asks.clone(), self.decided.clone(), ask.clone());
        let ended = self.agent.ended();
        self.tasks.spawn(async move {
            let told = tokio::select! {
                told = asks.answer(&ask) => told,
                () = ended.cancelled() => return,
            };
            let request = ask.request;
            let _ = decided.send(Happened::Answer { request, told });
        });
        // From here on it is the agent's: what is taken from the store must not be put off.
        self.step(Event::AskOver {
            request: request.to_owned(),
        })
        .await
    }

    async fn deliver(&mut self, request: &str, told: Told) -> Result<(), RunError> {
        let Some(ask) = self.waiting.remove(request) else {
            return Ok(());
        };
        self.over(&ask, AskOutcome::Delivered).await?;
        match told {
            Told::Line(line) => {
                self.agent.write(line);
                Ok(())
            }
            Told::Again(again) => self.wait_for_person(*again).await,
        }
    }

    /// Takes note of what was found out while the run ended, so that it is settled with the rest.
    pub(super) fn remember(&mut self, what: Happened) {
        match what {
            Happened::Put {
                request,
                asked: Asked::Waits(ask),
            } => {
                self.deciding.remove(&request);
                self.record.asks.push(ask.kept.clone());
                self.waiting.insert(request, *ask);
            }
            Happened::Inputs(inputs) => {
                let messages = inputs.into_iter().filter_map(|input| match input {
                    RunInput::Message(message) => Some(message),
                    RunInput::Interrupt | RunInput::Stop => None,
                });
                self.unread.extend(messages);
            }
            Happened::Put { .. }
            | Happened::Decided { .. }
            | Happened::Answer { .. }
            | Happened::ServerAsks(_) => {}
        }
    }

    /// Takes note that an ask is over for the agent.
    pub(super) async fn over(&mut self, ask: &WaitingAsk, outcome: AskOutcome) -> Result<(), RunError> {
        let id = ask.workflow.id;
        // What is about a call is delivered once its result is recorded; a form, which names none, with its reply.
        if ask.kept.kind == KeptAskKind::Form || outcome == AskOutcome::Withdrawn {
            self.record.deliver(|kept| kept.workflow == id);
            self.save().await?;
        }
        self.journal.own(OwnLine::Answered { id, outcome }).await;
        Ok(())
    }

    /// The asks that no person has answered, or whose answer is for the next process.
    pub(super) fn waiting_asks(&self) -> BTreeSet<WorkflowId> {
        let own = self.waiting.values().map(|ask| ask.workflow.id);
        own.chain(self.server_asks.iter().copied()).collect()
    }
}
