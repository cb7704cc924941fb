use super::*;
use proptest::prelude::*;

fn ask(request: &str, tool_use: &str, road: AskRoad) -> OpenAsk {
    OpenAsk {
        request: request.to_owned(),
        tool_use: tool_use.to_owned(),
        road,
    }
}

fn over(request: &str) -> Event {
    Event::AskOver {
        request: request.to_owned(),
    }
}

fn ended(deferred: Option<&str>) -> Event {
    Event::TurnEnded {
        deferred: deferred.map(str::to_owned),
        queued: 0,
    }
}

fn defer(request: &str) -> Vec<Effect> {
    let request = request.to_owned();
    vec![
        Effect::StopPatience,
        Effect::Defer { request },
        Effect::StartGrace,
    ]
}

fn terminated() -> Vec<Effect> {
    vec![Effect::StopPatience, Effect::Terminate]
}

fn finish(finish: Finish) -> Vec<Effect> {
    vec![Effect::StopPatience, Effect::Finish(finish)]
}

/// A run that asks before the call `t1`.
fn asking(input: Input) -> Machine {
    let mut machine = Machine::new(input);
    machine.step(Event::TurnBegan);
    machine.step(Event::ToolsCalled(vec!["t1".to_owned()]));
    machine.step(Event::Asked(ask("r1", "t1", AskRoad::Hook)));
    machine
}

#[test]
fn a_run_ends_with_its_turn_where_nothing_more_is_said() {
    let mut machine = Machine::new(Input::Ended);
    machine.step(Event::TurnBegan);
    assert_eq!(machine.phase(), Phase::Running);
    assert_eq!(
        machine.step(ended(None)),
        vec![Effect::StopPatience, Effect::CloseInput]
    );
    assert_eq!(machine.step(Event::AgentGone), finish(Finish::Done));
    assert!(machine.step(Event::AgentGone).is_empty(), "it is over once");
}

#[test]
fn a_run_whose_person_may_speak_waits_until_they_have_nothing_more_to_say() {
    let mut machine = Machine::new(Input::Open);
    machine.step(Event::TurnBegan);
    assert_eq!(machine.step(ended(None)), vec![Effect::StopPatience]);
    assert_eq!(machine.phase(), Phase::Idle);
    assert_eq!(machine.step(Event::InputEnded), vec![Effect::CloseInput]);
}

#[test]
fn a_message_that_waits_keeps_the_run_going() {
    let mut machine = Machine::new(Input::Ended);
    machine.step(Event::TurnBegan);
    let queued = Event::TurnEnded {
        deferred: None,
        queued: 1,
    };
    assert_eq!(machine.step(queued), vec![Effect::StopPatience]);
    assert_eq!(machine.phase(), Phase::Running);
}

#[test]
fn the_only_question_is_put_off_when_patience_is_over_and_parks_the_run_once_that_is_confirmed() {
    let mut machine = asking(Input::Ended);
    assert_eq!(machine.step(Event::PatienceOver), defer("r1"));
    assert!(machine.is_put_off("r1"));
    assert_eq!(
        machine.step(ended(Some("t1"))),
        vec![Effect::StopPatience, Effect::CloseInput]
    );
    assert!(machine.keeps_asks());
    let tool_use = "t1".to_owned();
    assert_eq!(
        machine.step(Event::AgentGone),
        finish(Finish::Parked { tool_use })
    );
}

#[test]
fn a_question_whose_put_off_is_not_confirmed_goes_on_waiting_without_the_agent() {
    for deferred in [None, Some("t2")] {
        let mut machine = asking(Input::Open);
        machine.step(Event::PatienceOver);
        assert_eq!(machine.step(ended(deferred)), terminated(), "{deferred:?}");
        assert!(machine.keeps_asks());
        assert_eq!(machine.step(Event::AgentGone), finish(Finish::Lost));
    }
    let mut silent = asking(Input::Open);
    silent.step(Event::PatienceOver);
    assert_eq!(silent.step(Event::GraceOver), terminated());
    assert_eq!(silent.step(Event::AgentGone), finish(Finish::Lost));
}

#[test]
fn what_is_asked_beside_a_call_that_is_put_off_is_answered_first() {
    let mut machine = asking(Input::Ended);
    machine.step(Event::PatienceOver);
    assert_eq!(
        machine.step(Event::Asked(ask("r2", "t2", AskRoad::Hook))),
        vec![Effect::StartPatience]
    );
    assert_eq!(machine.phase(), Phase::Asking);
    assert!(machine.is_put_off("r1") && !machine.is_put_off("r2"));
    assert_eq!(
        machine.step(over("r2")),
        vec![Effect::StopPatience, Effect::StartGrace]
    );
    assert_eq!(machine.phase(), Phase::Parking);
    machine.step(ended(Some("t1")));
    let tool_use = "t1".to_owned();
    assert_eq!(
        machine.step(Event::AgentGone),
        finish(Finish::Parked { tool_use })
    );

    let mut silent = asking(Input::Ended);
    silent.step(Event::PatienceOver);
    silent.step(Event::Asked(ask("r2", "t2", AskRoad::Hook)));
    assert_eq!(silent.step(Event::PatienceOver), terminated());
}

#[test]
fn a_call_is_put_off_only_once_its_message_is_said_to_the_end() {
    let mut speaking = asking(Input::Ended);
    speaking.step(Event::MessageBegan);
    assert_eq!(speaking.step(Event::PatienceOver), vec![Effect::StartPatience]);
    assert_eq!(speaking.step(Event::MessageEnded), defer("r1"));

    let mut more = asking(Input::Ended);
    more.step(Event::MessageBegan);
    assert_eq!(more.step(Event::HostEnds), vec![Effect::StartGrace]);
    more.step(Event::ToolsCalled(vec!["t2".to_owned()]));
    assert_eq!(
        more.step(Event::MessageEnded),
        terminated(),
        "it is not the only call"
    );
    let mut never = asking(Input::Ended);
    never.step(Event::MessageBegan);
    never.step(Event::HostEnds);
    assert_eq!(never.step(Event::GraceOver), terminated());
}

#[test]
fn what_was_said_while_a_call_is_put_off_begins_no_turn() {
    let mut machine = asking(Input::Open);
    machine.step(Event::PatienceOver);
    let deferred = Some("t1".to_owned());
    let queued = Event::TurnEnded { deferred, queued: 1 };
    assert_eq!(machine.step(queued), terminated());
    let tool_use = "t1".to_owned();
    assert_eq!(
        machine.step(Event::AgentGone),
        finish(Finish::Parked { tool_use })
    );
}

#[test]
fn nothing_is_put_off_while_a_call_beside_it_runs_or_asks() {
    let waits = vec![Effect::StartPatience];
    let mut beside = asking(Input::Ended);
    beside.step(Event::ToolsCalled(vec!["t2".to_owned()]));
    assert_eq!(beside.step(Event::PatienceOver), waits);
    assert_eq!(
        beside.step(Event::ToolsFinished(vec!["t2".to_owned()])),
        defer("r1")
    );

    let mut two = asking(Input::Open);
    two.step(Event::Asked(ask("r2", "t2", AskRoad::Hook)));
    assert_eq!(two.step(Event::PatienceOver), waits);
    assert_eq!(two.step(over("r2")), waits);
    assert_eq!(two.step(Event::PatienceOver), defer("r1"));
}

#[test]
fn what_cannot_be_put_off_waits_for_a_person_who_is_there_and_is_left_for_later_where_none_is() {
    let waits = vec![Effect::StartPatience];
    let permission = |input| {
        let mut machine = Machine::new(input);
        machine.step(Event::ToolsCalled(vec!["t1".to_owned()]));
        machine.step(Event::Asked(ask("r1", "t1", AskRoad::Open)));
        machine
    };
    let mut there = permission(Input::Open);
    for _ in 0..3 {
        assert_eq!(there.step(Event::PatienceOver), waits);
    }
    assert_eq!(there.phase(), Phase::Asking);
    assert_eq!(there.step(over("r1")), vec![Effect::StopPatience]);
    assert_eq!(there.phase(), Phase::Running);

    let mut alone = permission(Input::Ended);
    assert_eq!(alone.step(Event::PatienceOver), terminated());
    assert_eq!(alone.step(Event::AgentGone), finish(Finish::Lost));

    // What works beside it is given as much time once more.
    let mut beside = permission(Input::Ended);
    beside.step(Event::ToolsCalled(vec!["t2".to_owned()]));
    assert_eq!(beside.step(Event::PatienceOver), waits);
    assert_eq!(beside.step(Event::PatienceOver), terminated());

    // An ask of pml itself names no call: it is one of the call that runs.
    let mut server = Machine::new(Input::Ended);
    server.step(Event::ToolsCalled(vec!["t1".to_owned()]));
    server.step(Event::Asked(ask("pml", "", AskRoad::Open)));
    assert_eq!(server.step(Event::PatienceOver), terminated());
}

#[test]
fn a_host_that_ends_puts_off_what_it_can_and_leaves_the_rest_for_later() {
    let mut parkable = asking(Input::Open);
    assert_eq!(parkable.step(Event::HostEnds), defer("r1"));
    assert_eq!(parkable.step(Event::HostEnds), terminated(), "told twice");
    assert_eq!(parkable.step(Event::AgentGone), finish(Finish::Lost));

    let mut open = Machine::new(Input::Open);
    open.step(Event::Asked(ask("r1", "t1", AskRoad::Open)));
    assert_eq!(
        open.step(Event::HostEnds),
        vec![Effect::StopPatience, Effect::Terminate]
    );
    assert_eq!(open.step(Event::AgentGone), finish(Finish::Lost));

    let mut idle = Machine::new(Input::Open);
    idle.step(Event::TurnBegan);
    idle.step(ended(None));
    assert_eq!(idle.step(Event::HostEnds), vec![Effect::CloseInput]);
    assert_eq!(idle.step(Event::AgentGone), finish(Finish::Done));
}

#[test]
fn an_agent_that_dies_at_work_is_lost_and_one_that_is_stopped_is_not() {
    let mut lost = asking(Input::Open);
    assert_eq!(lost.step(Event::AgentGone), finish(Finish::Lost));
    let mut stopped = asking(Input::Open);
    assert_eq!(
        stopped.step(Event::Stop),
        vec![Effect::StopPatience, Effect::Terminate]
    );
    assert_eq!(stopped.step(Event::AgentGone), finish(Finish::Stopped));
}

fn events() -> impl Strategy<Value = Event> {
    let name = || prop_oneof![Just("1"), Just("2"), Just("3")];
    let call = move || name().prop_map(|name| format!("t{name}"));
    let road = prop_oneof![Just(AskRoad::Hook), Just(AskRoad::Open)];
    prop_oneof![
        Just(Event::TurnBegan),
        call().prop_map(|call| Event::ToolsCalled(vec![call])),
        call().prop_map(|call| Event::ToolsFinished(vec![call])),
        (name(), road).prop_map(|(name, road)| Event::Asked(ask(
            &format!("r{name}"),
            &format!("t{name}"),
            road
        ))),
        name().prop_map(|name| over(&format!("r{name}"))),
        Just(Event::PatienceOver),
        Just(Event::GraceOver),
        Just(Event::MessageBegan),
        Just(Event::MessageEnded),
        (proptest::option::of(call()), 0..2_u64)
            .prop_map(|(deferred, queued)| Event::TurnEnded { deferred, queued }),
        Just(Event::InputEnded),
        Just(Event::HostEnds),
        Just(Event::Stop),
        Just(Event::AgentGone),
    ]
}

proptest! {
    /// Whatever happens in whatever order: one end, no input closed under a question, and nothing put off beside another.
    #[test]
    fn every_order_of_events_keeps_the_promises(events in proptest::collection::vec(events(), 0..40)) {
        let mut machine = Machine::new(Input::Open);
        let mut ends = 0;
        for event in events {
            let asks = machine.asks().to_vec();
            for effect in machine.step(event.clone()) {
                match effect {
                    Effect::Finish(_) => ends += 1,
                    Effect::Defer { request } => {
                        prop_assert_eq!(asks.len(), 1);
                        prop_assert_eq!(&asks[0].request, &request);
                        prop_assert_eq!(asks[0].road, AskRoad::Hook);
                        prop_assert!(machine.is_put_off(&request));
                    }
                    Effect::CloseInput => {
                        let deferred = matches!(&event, Event::TurnEnded { deferred: Some(_), .. });
                        prop_assert!(machine.asks().is_empty() || deferred, "closed under {:?}", machine.asks());
                    }
                    Effect::StartPatience => prop_assert!(!machine.asks().is_empty()),
                    Effect::StopPatience | Effect::StartGrace | Effect::Terminate => {}
                }
            }
        }
        prop_assert!(ends <= 1);
    }
}
