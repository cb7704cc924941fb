//! Random lives of workflows in two connections ("processes") against a model that knows nothing of the machine.
//!
//! What must hold after every step: a call is taken at most once, never without an approval, never after its
//! deadline, byte for byte as it was suspended; the first answer stays, and what it approves stands with it and only
//! with it; both processes see the same.

use crate::workflow::Road;
use std::collections::BTreeSet;
use std::marker::PhantomData;

use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tempfile::TempDir;

use super::super::samples::{APPROVE, NOON, REFUSE, answers, new, on_its_tool, question};
use super::super::{Ask, LastCheck, NewWorkflow, Suspension, TransitionError};
use super::*;
use crate::workflow::Place;

/// A place that two processes share, empty at first; each kind of store has one.
trait SharedPlace {
    fn empty() -> Self;

    /// Opens the store there once more, as another process would.
    fn open(&self) -> Box<dyn Store>;
}

/// A SQLite database in a directory of its own.
struct SqliteFile(TempDir);

impl SharedPlace for SqliteFile {
    fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn open(&self) -> Box<dyn Store> {
        Place::File(self.0.path().join("workflows.db")).open().unwrap()
    }
}

/// The variants of arguments; the calls of those from the second number on ask questions.
const VARIANTS: usize = 5;
const QUESTIONS_FROM: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Taken,
    Expired,
    Withdrawn,
    Deleted,
}

/// Where the model says a workflow stands at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Open,
    Approved,
    Refused,
    /// Past its deadline, but no store has marked it.
    Dead,
    Ended(End),
}

#[derive(Debug, Clone)]
struct Row {
    arguments: usize,
    expires_at: Timestamp,
    first: Option<(Answer, Provenance)>,
    end: Option<End>,
}

impl Row {
    fn standing(&self, now: Timestamp) -> Standing {
        match (&self.end, &self.first) {
            (Some(end), _) => Standing::Ended(*end),
            (None, Some((Answer::Refuse { .. }, _))) => Standing::Refused,
            (None, _) if now >= self.expires_at => Standing::Dead,
            (None, Some((Answer::Approve { .. } | Answer::Answers { .. }, _))) => Standing::Approved,
            (None, None) => Standing::Open,
        }
    }

    /// The answer that lets this one go on.
    fn yes(&self) -> Answer {
        if self.arguments < QUESTIONS_FROM {
            APPROVE
        } else {
            answers()
        }
    }

    fn fits(&self, answer: &Answer) -> bool {
        *answer == REFUSE || *answer == self.yes()
    }

    fn end(&mut self, end: End, said: &'static str) -> &'static str {
        self.end = Some(end);
        said
    }

    fn answer(&mut self, answer: &Answer, by: Provenance, now: Timestamp) -> &'static str {
        match self.standing(now) {
            Standing::Ended(End::Deleted) => "unknown",
            _ if !self.fits(answer) => "unfit",
            Standing::Open => {
                self.first = Some((answer.clone(), by));
                "answered"
            }
            Standing::Refused => "already answered",
            other => no(other),
        }
    }

    fn take(&mut self, now: Timestamp) -> &'static str {
        match self.standing(now) {
            Standing::Approved => self.end(End::Taken, "taken"),
            other => no(other),
        }
    }

    fn withdraw(&mut self, now: Timestamp) -> &'static str {
        match self.standing(now) {
            Standing::Open => self.end(End::Withdrawn, "is withdrawn"),
            Standing::Approved => "already answered",
            other => no(other),
        }
    }

    fn expire(&mut self, now: Timestamp) -> &'static str {
        match self.standing(now) {
            Standing::Open | Standing::Approved => "not due",
            Standing::Dead => self.end(End::Expired, "is expired"),
            other => no(other),
        }
    }

    fn resume(&mut self, answer: &Answer, expected: &ToolExpectation, now: Timestamp) -> &'static str {
        let wrong_tool = *expected != ToolExpectation::AnyTool && *expected != on_its_tool();
        match self.standing(now) {
            Standing::Ended(End::Deleted) => "unknown",
            _ if wrong_tool => "wrong tool",
            _ if !self.fits(answer) => "unfit",
            Standing::Open if *answer == REFUSE => self.answer(answer, Road::Continuation.into(), now),
            Standing::Open => {
                self.first = Some((answer.clone(), Road::Continuation.into()));
                self.end(End::Taken, "taken")
            }
            Standing::Approved if *answer != REFUSE => self.end(End::Taken, "taken"),
            other => no(other),
        }
    }
}

#[derive(Debug, Clone)]
struct Model {
    now: Timestamp,
    rows: Vec<Row>,
    /// What the last step must have said.
    said: String,
}

#[derive(Debug, Clone)]
enum Step {
    Create {
        process: usize,
        arguments: usize,
        seconds: u64,
    },
    Answer {
        process: usize,
        row: usize,
        answer: Answer,
        by: Provenance,
    },
    Take {
        process: usize,
        row: usize,
    },
    Withdraw {
        process: usize,
        row: usize,
    },
    Expire {
        process: usize,
        row: usize,
    },
    Continue {
        process: usize,
        row: usize,
        answer: Answer,
        expected: ToolExpectation,
    },
    Sweep {
        process: usize,
    },
    Restart {
        process: usize,
    },
    Pass {
        seconds: u64,
    },
}

/// What a refused move says, for every standing where nothing depends on the move.
fn no(standing: Standing) -> &'static str {
    match standing {
        Standing::Open => "not answered",
        Standing::Approved => "already answered",
        Standing::Refused => "refused",
        Standing::Dead | Standing::Ended(End::Expired) => "expired",
        Standing::Ended(End::Taken) => "already used",
        Standing::Ended(End::Withdrawn) => "withdrawn",
        Standing::Ended(End::Deleted) => "unknown",
    }
}

impl Model {
    fn create(&mut self, arguments: usize, seconds: u64) -> String {
        let answered = |row: &Row| row.arguments == arguments && row.standing(self.now) == Standing::Approved;
        if let Some(answered) = self.rows.iter().position(answered) {
            return format!("answered {answered}");
        }
        let same = |row: &Row| row.arguments == arguments && row.first.is_none() && row.end.is_none();
        if let Some(twin) = self.rows.iter().position(same) {
            if self.rows[twin].standing(self.now) == Standing::Open {
                return format!("existing {twin}");
            }
            self.rows[twin].end = Some(End::Expired);
        }
        let expires_at = self.now.plus(Duration::from_secs(seconds));
        self.rows.push(Row {
            arguments,
            expires_at,
            first: None,
            end: None,
        });
        "new".to_owned()
    }

    fn sweep(&mut self) -> String {
        let mut swept = [0, 0];
        for row in &mut self.rows {
            if row.standing(self.now) == Standing::Dead {
                row.end = Some(End::Expired);
                swept[0] += 1;
            }
            if row.end != Some(End::Deleted) && row.expires_at.plus(KEPT_AFTER_DEADLINE) <= self.now {
                row.end = Some(End::Deleted);
                swept[1] += 1;
            }
        }
        format!("swept {swept:?}")
    }
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self {
            now: NOON,
            rows: Vec::new(),
            said: String::new(),
        })
        .boxed()
    }

    fn transitions(model: &Self) -> BoxedStrategy<Step> {
        let process = 0..2_usize;
        let create = (process.clone(), 0..VARIANTS, 30..400_u64).prop_map(|(process, arguments, seconds)| {
            Step::Create {
                process,
                arguments,
                seconds,
            }
        });
        let pass = prop_oneof![9 => 0..200_u64, 1 => Just(90_000)].prop_map(|seconds| Step::Pass { seconds });
        if model.rows.is_empty() {
            return prop_oneof![create, pass].boxed();
        }
        let target = (process.clone(), 0..model.rows.len());
        let answer = prop_oneof![3 => Just(APPROVE), 2 => Just(answers()), 1 => Just(REFUSE)];
        let by = prop_oneof![
            Just(Road::Cli.into()),
            Just(Road::Web.into()),
            Just(Road::Dialog.into())
        ];
        let other = ToolExpectation::Tool("serena:other".parse().unwrap());
        let expected =
            prop_oneof![4 => Just(on_its_tool()), 1 => Just(ToolExpectation::AnyTool), 1 => Just(other)];
        prop_oneof![
            3 => create,
            3 => (target.clone(), answer.clone(), by)
                .prop_map(|((process, row), answer, by)| Step::Answer { process, row, answer, by }),
            3 => target.clone().prop_map(|(process, row)| Step::Take { process, row }),
            1 => target.clone().prop_map(|(process, row)| Step::Withdraw { process, row }),
            1 => target.clone().prop_map(|(process, row)| Step::Expire { process, row }),
            4 => (target, answer, expected)
                .prop_map(|((process, row), answer, expected)| Step::Continue { process, row, answer, expected }),
            1 => process.clone().prop_map(|process| Step::Sweep { process }),
            1 => process.prop_map(|process| Step::Restart { process }),
            2 => pass,
        ]
        .boxed()
    }

    fn preconditions(model: &Self, step: &Step) -> bool {
        match step {
            Step::Answer { row, .. }
            | Step::Take { row, .. }
            | Step::Withdraw { row, .. }
            | Step::Expire { row, .. }
            | Step::Continue { row, .. } => *row < model.rows.len(),
            _ => true,
        }
    }

    fn apply(mut model: Self, step: &Step) -> Self {
        let now = model.now;
        model.said = match step {
            Step::Create {
                arguments, seconds, ..
            } => model.create(*arguments, *seconds),
            Step::Answer { row, answer, by, .. } => {
                model.rows[*row].answer(answer, by.clone(), now).to_owned()
            }
            Step::Take { row, .. } => model.rows[*row].take(now).to_owned(),
            Step::Withdraw { row, .. } => model.rows[*row].withdraw(now).to_owned(),
            Step::Expire { row, .. } => model.rows[*row].expire(now).to_owned(),
            Step::Continue {
                row,
                answer,
                expected,
                ..
            } => model.rows[*row].resume(answer, expected, now).to_owned(),
            Step::Sweep { .. } => model.sweep(),
            Step::Restart { .. } => "restarted".to_owned(),
            Step::Pass { seconds } => {
                model.now = now.plus(Duration::from_secs(*seconds));
                "passed".to_owned()
            }
        };
        model
    }
}

struct Processes<P> {
    place: P,
    stores: [Box<dyn Store>; 2],
    now: Timestamp,
    ids: Vec<WorkflowId>,
    /// Whose call was handed out.
    taken: BTreeSet<WorkflowId>,
}

fn arguments(variant: usize) -> String {
    format!(r#"{{ "n":{variant}.0,"s":"\ud800" }}"#)
}

/// What is suspended: an approval is asked, or questions are.
fn suspended(variant: usize) -> NewWorkflow {
    let mut new = new(&arguments(variant));
    if variant >= QUESTIONS_FROM {
        new.ask = Ask::Questions {
            questions: vec![question()],
        };
    }
    new
}

/// Says in the model's words what a store said.
fn said(outcome: &Result<Workflow, WorkflowError>) -> String {
    match outcome {
        Ok(workflow) => match workflow.state {
            State::Pending => "is pending",
            State::Answered { .. } => "answered",
            State::Taken { .. } => "taken",
            State::Expired => "is expired",
            State::Withdrawn => "is withdrawn",
        },
        Err(WorkflowError::Unknown { .. }) => "unknown",
        Err(WorkflowError::WrongTool { .. }) => "wrong tool",
        Err(WorkflowError::Unfit { .. }) => "unfit",
        Err(WorkflowError::Refused { refusal, .. }) => match refusal {
            TransitionError::Expired { .. } => "expired",
            TransitionError::NotDue { .. } => "not due",
            TransitionError::AlreadyAnswered { .. } => "already answered",
            TransitionError::AlreadyUsed { .. } => "already used",
            TransitionError::NotAnswered => "not answered",
            TransitionError::Refused { .. } => "refused",
            TransitionError::Withdrawn => "withdrawn",
        },
        Err(other) => panic!("{other:?}"),
    }
    .to_owned()
}

impl<P> Processes<P> {
    /// Checks that both processes see an approval exactly where an approving answer counts.
    fn approved(&mut self, model: &Model) {
        for store in &mut self.stores {
            let approvals = store.approvals().unwrap();
            for (number, row) in model.rows.iter().enumerate() {
                let expected = row.first.as_ref().is_some_and(|(answer, _)| *answer == APPROVE);
                assert_eq!(approvals.find(&launch(number)).is_some(), expected);
            }
        }
    }

    /// Checks what everybody who gets a call must be able to trust.
    fn handed_out(&mut self, outcome: &Result<Workflow, WorkflowError>, row: &Row) {
        let Ok(workflow) = outcome else { return };
        let State::Taken { answer, .. } = &workflow.state else {
            return;
        };
        assert!(self.taken.insert(workflow.id), "taken twice");
        assert_eq!(*answer, row.yes());
        assert!(self.now < row.expires_at, "taken after its deadline");
        assert!(
            workflow.call == new(&arguments(row.arguments)).call,
            "another call"
        );
    }
}

/// The launch that an approval of a row covers: another one of each row.
fn launch(row: usize) -> Digest {
    Digest::of([row.to_string()])
}

/// An answer that approves the launch of its row, if it approves.
fn approving(row: usize, answer: Answer, by: Provenance) -> RecordedAnswer {
    let approval = LaunchApproval {
        dependency: "serena".parse().unwrap(),
        version: None,
        integrity: None,
        package: None,
        lock: None,
        at_unix_ms: 7,
    };
    let launch = launch(row);
    RecordedAnswer {
        approves: (answer == APPROVE).then_some(ApprovedLaunch { launch, approval }),
        answer,
        by,
        check: LastCheck::none(),
    }
}

struct TwoProcesses<P>(PhantomData<P>);

impl<P: SharedPlace> StateMachineTest for TwoProcesses<P> {
    type SystemUnderTest = Processes<P>;
    type Reference = Model;

    fn init_test(_: &Model) -> Processes<P> {
        let place = P::empty();
        let stores = [place.open(), place.open()];
        Processes {
            place,
            stores,
            now: NOON,
            ids: Vec::new(),
            taken: BTreeSet::new(),
        }
    }

    fn apply(mut real: Processes<P>, model: &Model, step: Step) -> Processes<P> {
        let now = real.now;
        let (outcome, row) = match step {
            Step::Create {
                process,
                arguments: variant,
                seconds,
            } => {
                let mut suspended = suspended(variant);
                suspended.time_to_live = Duration::from_secs(seconds);
                let place = |ids: &[WorkflowId], workflow: &Workflow| {
                    ids.iter().position(|id| *id == workflow.id).unwrap()
                };
                let said = match real.stores[process].create(suspended, now).unwrap().suspension {
                    Suspension::New(workflow) => {
                        real.ids.push(workflow.id);
                        "new".to_owned()
                    }
                    Suspension::Existing(workflow) => format!("existing {}", place(&real.ids, &workflow)),
                    Suspension::Answered(workflow) => format!("answered {}", place(&real.ids, &workflow)),
                };
                assert_eq!(said, model.said);
                return real;
            }
            Step::Sweep { process } => {
                let swept = real.stores[process].sweep(now, &[]).unwrap();
                assert_eq!(
                    format!("swept {:?}", [swept.expired.len(), swept.deleted]),
                    model.said
                );
                return real;
            }
            Step::Restart { process } => {
                real.stores[process] = real.place.open();
                return real;
            }
            Step::Pass { .. } => {
                real.now = model.now;
                return real;
            }
            Step::Answer {
                process,
                row,
                answer,
                by,
            } => {
                let given = approving(row, answer, by);
                (real.stores[process].answer(real.ids[row], given, now), row)
            }
            Step::Take { process, row } => (real.stores[process].apply(real.ids[row], Event::Take, now), row),
            Step::Withdraw { process, row } => (
                real.stores[process].apply(real.ids[row], Event::Withdraw, now),
                row,
            ),
            Step::Expire { process, row } => {
                (real.stores[process].apply(real.ids[row], Event::Expire, now), row)
            }
            Step::Continue {
                process,
                row,
                answer,
                expected,
            } => {
                let by = Road::Continuation.into();
                (
                    real.stores[process].answer_and_take(
                        real.ids[row],
                        &expected,
                        approving(row, answer, by),
                        now,
                    ),
                    row,
                )
            }
        };
        assert_eq!(said(&outcome), model.said);
        real.handed_out(&outcome, &model.rows[row]);
        real.approved(model);
        real
    }

    fn check_invariants(real: &Processes<P>, model: &Model) {
        for (id, row) in real.ids.iter().zip(&model.rows) {
            let [one, other] = [0, 1].map(|process: usize| real.stores[process].find(*id).ok());
            assert_eq!(one, other);
            let first = one.as_ref().and_then(|workflow| match &workflow.state {
                State::Answered { answer, by, .. } | State::Taken { answer, by, .. } => {
                    Some((answer.clone(), by.clone()))
                }
                _ => None,
            });
            let end = match one.as_ref().map(|workflow| &workflow.state) {
                None => Some(End::Deleted),
                Some(State::Taken { .. }) => Some(End::Taken),
                Some(State::Expired) => Some(End::Expired),
                Some(State::Withdrawn) => Some(End::Withdrawn),
                Some(State::Pending | State::Answered { .. }) => None,
            };
            assert_eq!(end, row.end);
            if matches!(end, None | Some(End::Taken)) {
                assert_eq!(first, row.first, "the first answer stays");
            }
        }
        let open: Vec<WorkflowId> = real
            .ids
            .iter()
            .zip(&model.rows)
            .filter(|(_, row)| row.standing(model.now) == Standing::Open)
            .map(|(id, _)| *id)
            .collect();
        let listed = real.stores[0].pending(model.now).unwrap();
        assert_eq!(
            listed.iter().map(|workflow| workflow.id).collect::<BTreeSet<_>>(),
            open.into_iter().collect::<BTreeSet<_>>()
        );
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_processes_and_the_model_never_disagree(sequential 1..40 => TwoProcesses<SqliteFile>);
}
