//! The rules of the screen, one test each.

use crossterm::event::KeyCode;
use ratatui::layout::Size;

use super::messages::{Effect, Message};
use super::samples::{Bench, answered, ask, database, features, id, install, install_of};
use super::state::{Focus, Pane};
use crate::card::{Card, CardState, Decision, Outlook, Said, SaidAnswer};

fn said(labels: &[&str], text: Option<&str>) -> SaidAnswer {
    SaidAnswer {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        text: text.map(str::to_owned),
    }
}

fn says(number: u8, said: Said) -> Vec<Effect> {
    vec![Effect::Say { id: id(number), said }]
}

#[test]
fn a_new_ask_moves_neither_the_focus_nor_the_selection() {
    let mut bench = Bench::new(80, 24, vec![install(5)]);
    bench.press(KeyCode::Enter);
    // The older one stands above in the list.
    bench.send(Message::Changed(vec![install(2), install(9)]));
    assert_eq!(bench.screen.selected, Some(id(5)));
    assert_eq!(bench.screen.focus, Focus::Pane(Pane::Card));
    let ids: Vec<_> = bench.screen.cards.iter().map(|card| card.id).collect();
    assert_eq!(ids, [id(2), id(5), id(9)]);
}

#[test]
fn on_an_empty_screen_the_first_ask_is_shown_and_keys_wait_until_it_was_seen() {
    let mut bench = Bench::new(80, 24, Vec::new());
    bench.send(Message::Changed(vec![install(1)]));
    assert_eq!(bench.screen.selected, Some(id(1)));
    bench.hit(KeyCode::Char('c'));
    assert_eq!(bench.screen.focus, Focus::Pane(Pane::Queue));
    assert!(bench.note().starts_with("Too soon"), "{}", bench.note());
    bench.letter('c');
    assert!(matches!(bench.screen.focus, Focus::Armed { .. }));
}

#[test]
fn keys_that_decide_do_not_count_for_three_hundred_milliseconds_after_the_card_changed() {
    let mut bench = Bench::new(80, 24, vec![install(1), install(2)]);
    bench.press(KeyCode::Down);
    bench.wait(299);
    bench.hit(KeyCode::Char('c'));
    assert_eq!(bench.screen.focus, Focus::Pane(Pane::Queue));
    assert!(bench.note().starts_with("Too soon"), "{}", bench.note());
    bench.wait(300);
    bench.hit(KeyCode::Char('c'));
    assert!(matches!(bench.screen.focus, Focus::Armed { .. }));
}

#[test]
fn a_key_that_is_held_down_decides_nothing() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()])]);
    for _ in 0..100 {
        bench.wait(30);
        bench.hit(KeyCode::Enter);
    }
    assert_eq!(bench.effects, []);
}

#[test]
fn an_approval_takes_a_letter_and_then_enter() {
    for (letter, decision) in [
        ('c', Decision::Once),
        ('s', Decision::Session),
        ('a', Decision::Always),
    ] {
        let mut bench = Bench::new(80, 40, vec![install(1)]);
        bench.press(KeyCode::Enter);
        assert_eq!(bench.effects, [], "Enter alone approves nothing");
        bench.letter(letter);
        assert_eq!(bench.effects, [], "a letter alone approves nothing");
        bench.letter(letter);
        assert_eq!(bench.effects, [], "nor does the same letter twice");
        bench.press(KeyCode::Enter);
        assert_eq!(bench.effects, says(1, Said::decision(decision)));
    }
}

#[test]
fn any_other_key_takes_a_decision_back() {
    for key in [
        KeyCode::Esc,
        KeyCode::Char('n'),
        KeyCode::Char('q'),
        KeyCode::Backspace,
    ] {
        let mut bench = Bench::new(80, 24, vec![install(1)]);
        bench.letter('c');
        bench.press(key);
        bench.press(KeyCode::Enter);
        assert_eq!(bench.effects, [], "{key:?}");
    }
}

#[test]
fn enter_that_comes_with_the_letter_does_not_approve() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.wait(400);
    // As typed into the wrong window, or pasted by a terminal that cannot say so.
    bench.type_text("ls");
    bench.hit(KeyCode::Enter);
    assert_eq!(bench.effects, []);
}

#[test]
fn always_wants_the_card_to_be_read_to_its_end() {
    let command = format!("npm install {}", "x".repeat(2_000));
    let mut bench = Bench::new(40, 10, vec![install_of(1, &command)]);
    bench.letter('a');
    assert_eq!(bench.screen.focus, Focus::Pane(Pane::Queue));
    assert!(bench.note().contains("scroll"), "{}", bench.note());
    for _ in 0..100 {
        bench.press(KeyCode::PageDown);
    }
    bench.letter('a');
    bench.press(KeyCode::Enter);
    assert_eq!(bench.effects, says(1, Said::decision(Decision::Always)));
}

#[test]
fn a_command_that_does_not_fit_is_read_whole_by_scrolling() {
    let command = (0..400)
        .map(|number| format!("w{number}"))
        .collect::<Vec<_>>()
        .join(" ");
    let mut bench = Bench::new(40, 10, vec![install_of(1, &command)]);
    bench.press(KeyCode::Enter);
    let mut seen = bench.picture();
    for _ in 0..200 {
        bench.press(KeyCode::Down);
        seen.push('\n');
        seen.push_str(&bench.picture());
    }
    for word in command.split(' ') {
        assert!(
            seen.split_whitespace().any(|shown| shown == word),
            "{word} is not shown"
        );
    }
}

#[test]
fn abort_takes_a_reason_and_letters_in_it_are_text() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.letter('x');
    bench.type_text("quit, c s a h x");
    assert_eq!(bench.effects, []);
    bench.press(KeyCode::Enter);
    let reason = Some("quit, c s a h x".to_owned());
    assert_eq!(bench.effects, says(1, Said::refusal(reason)));
}

#[test]
fn abort_needs_no_reason() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.letter('x');
    bench.press(KeyCode::Enter);
    assert_eq!(bench.effects, says(1, Said::refusal(None)));
}

#[test]
fn typing_on_an_option_begins_a_text_and_letters_in_it_are_no_commands() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()])]);
    bench.press(KeyCode::Enter);
    bench.type_text("q, h and x: neither 1");
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    let own = said(&[], Some("q, h and x: neither 1"));
    assert_eq!(bench.effects, says(1, Said::answers(vec![own])));
}

#[test]
fn a_number_chooses_an_option_and_one_that_is_none_begins_a_text() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database(), database()])]);
    bench.press(KeyCode::Enter);
    bench.letter('2');
    bench.press(KeyCode::Enter);
    bench.letter('7');
    bench.type_text("0 GB");
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    let answers = vec![said(&["SQLite"], None), said(&[], Some("70 GB"))];
    assert_eq!(bench.effects, says(1, Said::answers(answers)));
}

#[test]
fn a_text_has_several_lines_and_pasted_line_breaks_send_nothing() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()])]);
    bench.press(KeyCode::Enter);
    bench.type_text("one");
    bench.control('j');
    bench.send(Message::Paste("two\r\nthree\r\u{1b}[31m漢字".to_owned()));
    assert_eq!(bench.effects, []);
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    let own = said(&[], Some("one\ntwo\nthree\n[31m漢字"));
    assert_eq!(bench.effects, says(1, Said::answers(vec![own])));
}

#[test]
fn a_paste_where_nothing_can_be_typed_does_nothing_and_says_so() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.send(Message::Paste("c\r".to_owned()));
    assert_eq!(bench.screen.focus, Focus::Pane(Pane::Queue));
    assert!(bench.note().starts_with("Nothing was pasted"), "{}", bench.note());
}

#[test]
fn one_option_takes_the_place_of_another_and_of_the_text_which_is_kept() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()])]);
    bench.press(KeyCode::Enter);
    bench.letter('1');
    bench.type_text("own");
    bench.press(KeyCode::Up);
    bench.letter(' ');
    assert!(bench.picture().contains("own"), "{}", bench.picture());
    bench.press(KeyCode::Tab);
    bench.press(KeyCode::Enter);
    let chosen = said(&["SQLite"], None);
    assert_eq!(bench.effects, says(1, Said::answers(vec![chosen])));
}

#[test]
fn several_options_and_a_text_count_together() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![features()])]);
    bench.press(KeyCode::Enter);
    bench.letter('1');
    bench.letter('2');
    bench.letter('1');
    bench.type_text("and search");
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    let both = said(&["Export"], Some("and search"));
    assert_eq!(bench.effects, says(1, Said::answers(vec![both])));
}

#[test]
fn what_is_unanswered_is_sent_only_by_a_key_that_says_so() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database(), features()])]);
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Tab);
    bench.press(KeyCode::Tab);
    assert!(bench.picture().contains("2 unanswered"), "{}", bench.picture());
    bench.press(KeyCode::Enter);
    assert_eq!(bench.effects, []);
    assert_eq!(bench.screen.focus, Focus::Pane(Pane::Card), "Enter goes back");
    bench.letter('1');
    bench.press(KeyCode::Tab);
    bench.press(KeyCode::Tab);
    bench.letter('s');
    let answers = [Some(said(&["Postgres"], None)), None];
    assert_eq!(bench.effects, says(1, Said::answers(answers)));
}

#[test]
fn silence_is_no_answer() {
    let mut bench = Bench::new(80, 24, vec![install(1), ask(2, vec![database()])]);
    for _ in 0..1_000 {
        bench.wait(1_000);
    }
    assert_eq!(bench.effects, []);
    assert!(bench.picture().contains("TOO LATE"), "{}", bench.picture());
}

#[test]
fn an_ask_that_is_answered_elsewhere_says_by_whom_and_keeps_what_was_typed() {
    let card = ask(1, vec![database()]);
    let mut bench = Bench::new(80, 24, vec![card.clone(), install(2)]);
    bench.press(KeyCode::Enter);
    bench.type_text("my own wor");
    bench.send(Message::Changed(vec![answered(&card, "SQLite")]));
    // The rest of the word is no command: `q` does not leave, `h` shows no history.
    bench.type_text("qhx");
    assert_eq!(bench.effects, []);
    let picture = bench.picture();
    for part in ["ANSWERED by dialog", "SQLite", "my own wor"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert_eq!(bench.screen.selected, Some(id(1)), "it stays in sight");
    bench.press(KeyCode::Enter);
    assert_eq!(bench.screen.selected, Some(id(2)));
    bench.letter('h');
    assert!(bench.picture().contains("my own wor"), "{}", bench.picture());
}

#[test]
fn a_prepared_decision_about_a_card_that_closed_is_taken_back() {
    let card = install(1);
    let mut bench = Bench::new(80, 24, vec![card.clone()]);
    bench.letter('c');
    bench.send(Message::Changed(vec![answered(&card, "refused")]));
    bench.press(KeyCode::Enter);
    assert_eq!(bench.effects, []);
    assert_eq!(bench.screen.cards.len(), 0, "Enter went on, and nothing waits");
}

#[test]
fn an_answer_that_is_not_recorded_says_why_and_keeps_its_draft() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()])]);
    bench.press(KeyCode::Enter);
    bench.type_text("own");
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    let outcome = Err("the disk is full".to_owned());
    bench.send(Message::Recorded { id: id(1), outcome });
    assert_eq!(bench.note(), "Not recorded: the disk is full");
    assert!(bench.picture().contains("> own"), "{}", bench.picture());
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    assert_eq!(bench.effects.len(), 2, "it can be sent again");
}

#[test]
fn an_answer_of_ones_own_is_shown_as_sent_and_waits_for_a_key() {
    let card = install(1);
    let mut bench = Bench::new(80, 24, vec![card.clone(), install(2)]);
    bench.letter('c');
    bench.press(KeyCode::Enter);
    let outcome = Ok(Box::new(answered(&card, "approved")));
    bench.send(Message::Recorded { id: id(1), outcome });
    assert!(bench.note().contains("is sent: approved"), "{}", bench.note());
    assert_eq!(bench.screen.selected, Some(id(1)));
    bench.press(KeyCode::Enter);
    assert_eq!(bench.screen.selected, Some(id(2)));
}

#[test]
fn only_one_answer_is_on_its_way_at_a_time() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    for _ in 0..2 {
        bench.letter('c');
        bench.press(KeyCode::Enter);
    }
    assert_eq!(bench.effects.len(), 1);
}

#[test]
fn the_bell_rings_once_for_asks_that_come_together_and_not_for_those_of_the_beginning() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.send(Message::Changed(vec![install(2)]));
    bench.wait(200);
    bench.send(Message::Changed(vec![install(3), install(2)]));
    assert_eq!(bench.effects, []);
    bench.wait(300);
    let title = "Install and run serena@0.5.0? (+1 more)".to_owned();
    assert_eq!(bench.effects, [Effect::Ring { title }]);
    bench.wait(10_000);
    assert_eq!(bench.effects.len(), 1);
}

#[test]
fn leaving_with_something_typed_takes_the_key_twice() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()])]);
    bench.press(KeyCode::Enter);
    bench.type_text("own");
    bench.control('c');
    assert_eq!(bench.effects, []);
    assert!(bench.note().contains("not sent"), "{}", bench.note());
    bench.control('c');
    assert_eq!(bench.effects, [Effect::Quit]);
}

#[test]
fn a_draft_waits_while_another_ask_is_answered() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database()]), install(2)]);
    bench.press(KeyCode::Enter);
    bench.type_text("own");
    bench.press(KeyCode::Esc);
    bench.press(KeyCode::Down);
    bench.letter('c');
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Up);
    bench.press(KeyCode::Enter);
    assert!(bench.picture().contains("> own"), "{}", bench.picture());
}

#[test]
fn what_is_read_anew_closes_what_is_gone_and_rings_for_what_is_new() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.send(Message::Snapshot {
        pending: vec![install(2)],
        recent: Vec::new(),
    });
    assert_eq!(bench.screen.selected, Some(id(1)));
    assert_eq!(bench.screen.cards[0].state, CardState::Withdrawn);
    bench.wait(500);
    assert_eq!(bench.effects.len(), 1);
}

#[test]
fn every_size_of_a_terminal_can_be_drawn() {
    let cards = || vec![install(1), ask(2, vec![database(), features()])];
    for (width, height) in [(1, 1), (2, 30), (200, 2), (40, 10), (300, 100)] {
        let mut bench = Bench::new(80, 24, cards());
        bench.send(Message::Resized(Size::new(width, height)));
        for key in [
            KeyCode::Down,
            KeyCode::Enter,
            KeyCode::Char('z'),
            KeyCode::Tab,
            KeyCode::Tab,
        ] {
            bench.press(key);
            bench.picture();
        }
    }
}

#[test]
fn that_the_agent_is_gone_is_told_while_the_card_is_open_and_moves_nothing() {
    let card = install(1);
    let mut bench = Bench::new(80, 24, vec![card.clone(), install(2)]);
    bench.letter('c');
    let gone = Card {
        keeps_text: Outlook::NextCall.text(),
        ..card
    };
    bench.send(Message::Snapshot {
        pending: vec![gone, install(2)],
        recent: Vec::new(),
    });
    assert!(matches!(bench.screen.focus, Focus::Armed { .. }));
    assert!(
        bench.picture().contains("the agent is gone"),
        "{}",
        bench.picture()
    );
    bench.wait(1_000);
    assert_eq!(bench.effects, [], "nothing is new, so nothing rings");
}
