//! The door for answers: judges an answer by one table and records it with everything that it grants.
//!
//! A conversation brings what its dialogs, prompts and continuations say; [`super::Desk`] brings what a person says in a
//! terminal, on a page or in a chat. Both pass here, so an answer counts the same on every road.

use tokio_util::sync::CancellationToken;

use super::approval::approved_launch;
use super::authority::{
    AnswerWeight, Effect, NotEntitled, Relation, Runner, may_answer, policy_for, stricter,
};
use super::rule_error::RuleError;
use super::{Refusal, now, presence, project_trust};
use crate::card::{Complaint, Said, decide};
use crate::config::{self, By, Files};
use crate::history::History;
use crate::permissions::writer::{FileEdit, FileKind, JointError, edit_jointly};
use crate::permissions::{ConfigChange, change_records};
use crate::protocol::continuation::Scope;
use crate::workflow::{
    Answer, LastCheck, Provenance, RecordedAnswer, Road, State, Workflow, WorkflowError, Workflows,
};

/// Where an answer comes from: what the table looks at besides the answer and the ask.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Who may answer, by the strictest configuration that has a say.
    pub(super) policy: By,
    /// The configuration that the ask was made under; it is read again when the answer is recorded.
    pub(super) asking: Files,
    /// The configuration of the place that the answer comes from, where that is another.
    pub(super) here: Option<Files>,
    /// How the place of the answer relates to the conversation that asked.
    pub(super) relation: Relation,
    /// Who runs the process that brings it.
    pub(super) runner: Runner,
}

impl Source {
    /// Looks once more, inside the transaction that records an answer, whether it counts under the policy of then.
    pub(super) fn last_check(&self, effect: Effect, road: Road) -> LastCheck {
        let source = self.clone();
        LastCheck::new(move |workflow| {
            let policy = policy(&source.asking, source.here.as_ref(), workflow.origin.by);
            let source = Self {
                policy,
                ..source.clone()
            };
            Ok(counts(&source, workflow, effect, road)?)
        })
    }
}

/// Returns the strictest of the policy that an ask was made under and of those that stand in files now. It blocks; a
/// configuration that cannot be read takes a person's word only.
pub(super) fn policy(asking: &Files, here: Option<&Files>, asked: By) -> By {
    let read = |files| config::read(files).map_or(By::Human, |config| config.approvals.by);
    std::iter::once(asking)
        .chain(here)
        .map(read)
        .fold(asked, stricter)
}

/// What an approval may grant beyond its call.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// The server exactly as the person was shown it, and the rule that they ask for.
    AsShown {
        /// The package of the server, where it is known here.
        package: Option<String>,
    },
    /// Nothing: what would run has changed since the person was asked.
    CallOnly,
}

/// An answer that was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The ask with its answer.
    pub workflow: Workflow,
    /// The rule that `always` wrote.
    pub rule: Option<FileEdit>,
}

/// Why an answer and its rule do not both stand.
pub(super) enum AnswerRuleError {
    /// The rule could not be written, and nothing was answered.
    Rule(RuleError),
    /// The answer does not count, and its rule is not there.
    Answer(WorkflowError),
    /// The call that brought the answer was cancelled before anything was written.
    Abandoned,
}

/// Tells what an answer to an ask is worth on the road it comes on.
pub(super) fn weigh(
    source: &Source,
    workflow: &Workflow,
    effect: Effect,
    road: Road,
) -> Result<AnswerWeight, Refusal> {
    let refused = |why| Refusal::NotEntitled {
        code: workflow.code.clone(),
        why,
    };
    let in_a_dialog = matches!(road, Road::Dialog | Road::Elicitation);
    if in_a_dialog && effect == Effect::Grants && !presence::card(workflow).fits_dialog() {
        return Err(refused(NotEntitled::TooLong));
    }
    let policy = policy_for(&workflow.ask, source.policy);
    may_answer(policy, road, source.relation, source.runner, effect).map_err(refused)
}

/// Checks that an answer with this effect would count now, and that the ask still takes one.
pub(super) fn check(
    source: &Source,
    workflow: &Workflow,
    effect: Effect,
    by: &Provenance,
) -> Result<(), Refusal> {
    counts(source, workflow, effect, by.road)?;
    Ok(workflow.takes_answers_at(now())?)
}

/// Makes an answer of what was said to an ask, if it counts now and is one.
pub(super) fn answer(
    source: &Source,
    workflow: &Workflow,
    said: Said,
    by: &Provenance,
) -> Result<Answer, Refusal> {
    check(source, workflow, Effect::of_said(&said), by)?;
    decided(workflow, said)
}

/// Makes an answer of what was said to an ask, if it is one.
pub(super) fn decided(workflow: &Workflow, said: Said) -> Result<Answer, Refusal> {
    decide(&presence::card(workflow), said).map_err(|complaint| {
        let code = workflow.code.clone();
        match complaint {
            Complaint::Kind { wanted } => WorkflowError::Unfit { code, wanted }.into(),
            complaint => Refusal::Unfit { code, complaint },
        }
    })
}

/// Checks that an answer with this effect counts on the road it comes on.
fn counts(source: &Source, workflow: &Workflow, effect: Effect, road: Road) -> Result<(), Refusal> {
    match weigh(source, workflow, effect, road)? {
        AnswerWeight::Decides => Ok(()),
        AnswerWeight::Looks => Err(Refusal::NeedsPerson {
            code: workflow.code.clone(),
        }),
    }
}

/// Records an answer and everything that it grants beyond its call, or nothing of it.
///
/// Whether it counts is asked again at that moment: recording may wait for other processes and for the disk.
pub(super) async fn record(
    workflows: &Workflows,
    history: &History,
    source: &Source,
    workflow: &Workflow,
    answer: Answer,
    by: Provenance,
    reach: Reach,
) -> Result<Recorded, Refusal> {
    let approves = match &reach {
        Reach::AsShown { package } => approved_launch(workflow, &answer, package.clone(), now()),
        Reach::CallOnly => None,
    };
    let writes_rule = match (&answer, &reach) {
        (Answer::Approve { scope: Scope::Always }, Reach::AsShown { .. }) => true,
        (Answer::Approve { .. } | Answer::Refuse { .. } | Answer::Answers { .. }, _) => false,
    };
    let check = source.last_check(Effect::of(&answer), by.road);
    let given = RecordedAnswer {
        answer,
        by,
        approves,
        check,
    };
    let answered = {
        let (workflows, given, id) = (workflows.clone(), given.clone(), workflow.id);
        async move { workflows.answer(id, given).await }
    };
    if !writes_rule {
        let workflow = answered.await.map_err(not_recorded)?;
        project_trust::accept_answered(&source.asking.accepted, &workflow, history).await?;
        return Ok(Recorded { workflow, rule: None });
    }
    let never = CancellationToken::new();
    match with_rule(
        workflows,
        history,
        &source.asking,
        workflow,
        &given,
        &never,
        answered,
    )
    .await
    {
        Ok((edited, workflow)) => Ok(Recorded {
            workflow,
            rule: Some(edited),
        }),
        Err(AnswerRuleError::Answer(error)) => Err(not_recorded(error)),
        Err(AnswerRuleError::Abandoned) => Err(Refusal::Expired),
        Err(AnswerRuleError::Rule(error)) => Err(Refusal::NotRecorded(Box::new(error))),
    }
}

/// Adds the exact tool to the allow list of the configuration that the ask was made under and does `then`, both or
/// neither, off the thread of the runtime: the writer waits for its lock and for the disk.
pub(super) async fn with_rule(
    workflows: &Workflows,
    history: &History,
    files: &Files,
    asked: &Workflow,
    given: &RecordedAnswer,
    abandoned: &CancellationToken,
    then: impl Future<Output = Result<Workflow, WorkflowError>> + Send + 'static,
) -> Result<(FileEdit, Workflow), AnswerRuleError> {
    let files = files.clone();
    let tool = asked.call.tool.clone();
    let (workflows, id, given) = (workflows.clone(), asked.id, given.clone());
    let (abandoned, history) = (abandoned.clone(), history.clone());
    let runtime = tokio::runtime::Handle::current();
    let writing = tokio::task::spawn_blocking(move || {
        let check = || {
            if abandoned.is_cancelled() {
                return Err(Box::new(None));
            }
            let found = runtime.block_on(workflows.find(id)).map_err(boxed)?;
            let brought = (given.answer.clone(), given.by.clone());
            found.yields_to(Some(&brought), now()).map_err(boxed)?;
            // An answer that does not count any more writes nothing that would have to be put back.
            match found.state {
                State::Pending => given.check.look(&found).map_err(|reason| {
                    let code = found.code.clone();
                    boxed(WorkflowError::Vetoed { code, reason })
                }),
                State::Answered { .. } | State::Taken { .. } | State::Expired | State::Withdrawn => Ok(()),
            }
        };
        let changes = [ConfigChange::AllowTool { tool }];
        let then = || runtime.block_on(then).map_err(boxed);
        let (kind, by) = (FileKind::Pml(&files), given.by.to_string());
        let done = edit_jointly(&files.project, kind, &changes, check, then);
        if let Ok((edited, _)) = &done {
            history.note_now(&change_records(edited, &changes, &by));
        }
        done
    });
    match writing.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(JointError::Write(error))) => Err(AnswerRuleError::Rule(error.into())),
        Ok(Err(JointError::Other(error))) => {
            Err(error.map_or(AnswerRuleError::Abandoned, AnswerRuleError::Answer))
        }
        Ok(Err(JointError::Stands { error, source })) => {
            let source = crate::report::render_hinted(&source);
            tracing::warn!(%id, "the answer did not count, but its rule stands: {source}");
            Err(error.map_or(AnswerRuleError::Abandoned, AnswerRuleError::Answer))
        }
        Err(panicked) => Err(AnswerRuleError::Rule(panicked.into())),
    }
}

/// An answer that the store could not keep is told as such: its ask still waits.
pub(super) fn not_recorded(error: WorkflowError) -> Refusal {
    if let WorkflowError::Vetoed { reason, .. } = error {
        return reason
            .downcast()
            .map_or_else(Refusal::NotRecorded, |refusal| *refusal);
    }
    if error.is_of_the_store() {
        Refusal::NotRecorded(Box::new(error))
    } else {
        error.into()
    }
}

fn boxed(error: WorkflowError) -> Box<Option<WorkflowError>> {
    Box::new(Some(error))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Environment, FileChoice, Locations};
    use crate::protocol::Digest;
    use crate::protocol::approval::ShownProjectFile;
    use crate::workflow::{Ask, samples};

    fn files(root: &Path, name: &str) -> Files {
        let environment = Environment::new([("HOME", root)], root);
        let locations = Locations::of(&environment).unwrap();
        Files {
            chosen: FileChoice::Named,
            ..Files::new(root.join(name), &locations)
        }
    }

    fn write(files: &Files, text: &str) {
        crate::disk::replace(&files.project, text.as_bytes()).unwrap();
    }

    const BY_CLIENT: &str = r#"{"approvals": {"by": "client"}}"#;
    const BY_HUMAN: &str = r#"{"approvals": {"by": "human"}}"#;

    #[test]
    fn an_answer_is_recorded_only_if_it_counts_under_the_policy_of_that_moment() {
        let root = tempfile::tempdir().unwrap();
        let (asking, here) = (files(root.path(), "asking.json"), files(root.path(), "here.json"));
        let source = Source {
            policy: By::Client,
            asking: asking.clone(),
            here: Some(here.clone()),
            relation: Relation::SameConversation,
            runner: Runner::Person,
        };
        let workflow = samples::workflow(Ask::Use {
            reach: crate::workflow::UseReach::Lasting,
        });
        let check = source.last_check(Effect::Grants, Road::Continuation);
        for (texts, expected) in [
            ([BY_CLIENT, BY_CLIENT], true),
            ([BY_HUMAN, BY_CLIENT], false),
            ([BY_CLIENT, BY_HUMAN], false),
            // Who may answer cannot be read: then a person.
            (["{", BY_CLIENT], false),
            ([BY_CLIENT, BY_CLIENT], true),
        ] {
            write(&asking, texts[0]);
            write(&here, texts[1]);
            assert_eq!(check.look(&workflow).is_ok(), expected, "{texts:?}");
        }
        let mut strictly_asked = workflow;
        strictly_asked.origin.by = By::Human;
        assert!(check.look(&strictly_asked).is_err(), "as it was asked");
    }

    #[test]
    fn a_dialog_grants_nothing_that_it_has_no_room_to_show() {
        let root = tempfile::tempdir().unwrap();
        let source = Source {
            policy: By::Human,
            asking: files(root.path(), "asking.json"),
            here: None,
            relation: Relation::SameConversation,
            runner: Runner::Person,
        };
        let about = |wants: usize| {
            samples::workflow(Ask::Trust {
                file: ShownProjectFile {
                    path: "/project/.pml.json".to_owned(),
                    origin: "came with the repository".to_owned(),
                    content: Digest::of(["content"]),
                    wants: vec!["runs without a question: `x`".to_owned(); wants],
                    changes: Vec::new(),
                },
            })
        };
        let (short, long) = (about(1), about(1_000));
        for road in [Road::Dialog, Road::Elicitation, Road::Cli, Road::Web] {
            let grants = |workflow| counts(&source, workflow, Effect::Grants, road).is_ok();
            let shows_all = matches!(road, Road::Cli | Road::Web);
            assert_eq!((grants(&short), grants(&long)), (true, shows_all), "{road}");
            assert!(counts(&source, &long, Effect::Refuses, road).is_ok(), "{road}");
        }
    }

    #[test]
    fn an_answer_that_only_looks_or_comes_from_an_agent_does_not_count() {
        let root = tempfile::tempdir().unwrap();
        let workflow = samples::workflow(Ask::Use {
            reach: crate::workflow::UseReach::Lasting,
        });
        let refused = |policy, runner, road| {
            let source = Source {
                policy,
                asking: files(root.path(), "asking.json"),
                here: None,
                relation: Relation::SameConversation,
                runner,
            };
            counts(&source, &workflow, Effect::Grants, road).err()
        };
        assert!(refused(By::Client, Runner::Person, Road::Continuation).is_none());
        assert!(matches!(
            refused(By::Human, Runner::Person, Road::Continuation),
            Some(Refusal::NeedsPerson { .. })
        ));
        assert!(refused(By::Human, Runner::Person, Road::Cli).is_none());
        assert!(matches!(
            refused(By::Human, Runner::Agent, Road::Cli),
            Some(Refusal::NotEntitled { .. })
        ));
    }
}
