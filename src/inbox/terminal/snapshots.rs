//! What stands on the screen, as a person sees it.

use crossterm::event::KeyCode;
use insta::assert_snapshot;

use super::messages::Message;
use super::samples::{Bench, answered, ask, database, features, install, install_of, question};
use super::theme::Palette;
use crate::protocol::question::Selection;

#[test]
fn an_install_at_80_by_24() {
    let bench = Bench::new(80, 24, vec![install(1), ask(2, vec![database()])]);
    assert_snapshot!(bench.picture(), @r"
      2 wait          project                   agent                     age  left
    > baaaa install   service                   claude-code 2.1           1m   4m
      caaaa questions service                   claude-code 2.1           1m   4m
    ── baaaa install, 4m left ──────────────────────────────────────────────────────
    Install and run serena@0.5.0?
    would run   npm install serena@0.5.0
    scripts     ! install scripts run once you accept them
    wanted for  serena:analyze
    published   75 days ago (2026-08-31T10:11:12Z)
    integrity   sha512-3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=
    asked by    claude-code 2.1 in /home/me/service
    answer      the agent waits for this; 4m left

    c  Continue: this version, from now on
    s  Only this session: until the pml of this agent ends
    a  Always: writes serena:analyze into /project/.pml.json
    x  Abort: nothing runs





    ↑↓ choose  Enter read  c continue  s session  a always  x abort
    PgUp/PgDn scroll  h history  q quit
    ");
}

#[test]
fn an_install_at_40_by_10() {
    let mut bench = Bench::new(40, 10, vec![install(1), ask(2, vec![database()])]);
    assert_snapshot!(bench.picture(), @r"
      pml inbox: 2 wait           age  left
    > baaaa install   service     1m   4m
      caaaa questions service     1m   4m
    ── baaaa install, 4m left  ↓ 1-3 of 22 ─
    Install and run serena@0.5.0?
    would run: npm install serena@0.5.0
    scripts:
    ↑↓ choose  Enter read  c continue
    s session  a always  x abort
    PgUp/PgDn scroll  h history  q quit
    ");
    bench.press(KeyCode::Enter);
    assert_snapshot!(bench.picture(), @r"
    1/2 baaaa install, 4m left  ↓ 1-7 of 22
    Install and run serena@0.5.0?
    would run: npm install serena@0.5.0
    scripts:
      ! install scripts run once you accept
      them
    wanted for: serena:analyze
    published:
    c continue  s session  a always  x abort
    ↑↓ scroll  Esc list  h history  q quit
    ");
}

#[test]
fn a_decision_waits_for_enter() {
    let mut bench = Bench::new(80, 24, vec![install(1)]);
    bench.letter('a');
    bench.wait(400);
    assert_snapshot!(bench.picture(), @r"
      1 waits         project                   agent                     age  left
    > baaaa install   service                   claude-code 2.1           1m   4m
    ── baaaa install, 4m left ──────────────────────────────────────────────────────
    Install and run serena@0.5.0?
    would run   npm install serena@0.5.0
    scripts     ! install scripts run once you accept them
    wanted for  serena:analyze
    published   75 days ago (2026-08-31T10:11:12Z)
    integrity   sha512-3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=
    asked by    claude-code 2.1 in /home/me/service
    answer      the agent waits for this; 4m left

    c  Continue: this version, from now on
    s  Only this session: until the pml of this agent ends
    a  Always: writes serena:analyze into /project/.pml.json
    x  Abort: nothing runs






    Always: writes serena:analyze into /project/.pml.json? Enter says yes.
    Enter yes, do it  any other key no  ↑↓ scroll
    ");
    bench.letter('x');
    bench.type_text("not today");
    assert_snapshot!(bench.picture(), @r"
      1 waits         project                   agent                     age  left
    >*baaaa install   service                   claude-code 2.1           1m   4m
    ── baaaa install, 4m left ──────────────────────────────────────────────────────
    Install and run serena@0.5.0?
    would run   npm install serena@0.5.0
    scripts     ! install scripts run once you accept them
    wanted for  serena:analyze
    published   75 days ago (2026-08-31T10:11:12Z)
    integrity   sha512-3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJic=
    asked by    claude-code 2.1 in /home/me/service
    answer      the agent waits for this; 4m left

    c  Continue: this version, from now on
    s  Only this session: until the pml of this agent ends
    a  Always: writes serena:analyze into /project/.pml.json
    x  Abort: nothing runs





    Abort: nothing runs. Why? (optional)
    > not today
    Enter abort it  ^J new line  Esc do not
    ");
}

#[test]
fn a_long_command_scrolls() {
    let command = (0..120)
        .map(|number| format!("argument{number}"))
        .collect::<Vec<_>>()
        .join(" ");
    let mut bench = Bench::new(60, 14, vec![install_of(1, &command)]);
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::PageDown);
    assert_snapshot!(bench.picture(), @r"
    1/1 baaaa install, 4m left  ↑↓ 11-21 of 43
                argument36 argument37 argument38 argument39
                argument40 argument41 argument42 argument43
                argument44 argument45 argument46 argument47
                argument48 argument49 argument50 argument51
                argument52 argument53 argument54 argument55
                argument56 argument57 argument58 argument59
                argument60 argument61 argument62 argument63
                argument64 argument65 argument66 argument67
                argument68 argument69 argument70 argument71
                argument72 argument73 argument74 argument75
                argument76 argument77 argument78 argument79
    c continue  s session  a always  x abort  ↑↓ scroll
    Esc list  h history  q quit
    ");
}

#[test]
fn a_question_with_options_own_words_and_review() {
    let mut bench = Bench::new(80, 24, vec![ask(1, vec![database(), features(), database()])]);
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Down);
    assert_snapshot!(bench.picture(), @r"
      1 waits         project                   agent                     age  left
    > baaaa questions service                   claude-code 2.1           1m   4m
    ── baaaa questions, 4m left ────────────────────────────────────────────────────
    [Database]  Features   Database   Review
    Which database?
     1 ( ) Postgres: runs already
    >2 ( ) SQLite: one file
       ( ) Other, in your own words:














    ↑↓ 1-9 choose  Space mark  Enter next  letters own words  Tab next question
    ^X abort  PgUp/PgDn scroll  Esc list  ^C quit
    ");
    bench.press(KeyCode::Enter);
    bench.letter('1');
    bench.type_text("and a search that");
    bench.control('j');
    bench.type_text("finds things");
    assert_snapshot!(bench.picture(), @r"
      1 waits         project                   agent                     age  left
    >*baaaa questions service                   claude-code 2.1           1m   4m
    ── baaaa questions, 4m left ────────────────────────────────────────────────────
     Database+  [Features+]  Database   Review
    Which features first?
     1 [x] Login: by mail
     2 [ ] Export: as CSV
    >  [x] Other, in your own words:
    > and a search that
    > finds things












    Enter next  ^J new line  ↑ options  Tab next question  ^X abort
    PgUp/PgDn scroll  Esc list  ^C quit
    ");
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Tab);
    bench.wait(400);
    assert_snapshot!(bench.picture(), @r"
      1 waits         project                   agent                     age  left
    >*baaaa questions service                   claude-code 2.1           1m   4m
    ── baaaa questions, 4m left ────────────────────────────────────────────────────
    1 unanswered: go back, or send it so
    Database
      SQLite
    Features
      Login
      and a search that
      finds things
    Database
      ! (left unanswered)










    Enter goes back, s sends it so.
    Enter go back  s send so  ^X abort  PgUp/PgDn scroll
    ");
}

#[test]
fn wide_characters_keep_their_columns() {
    let labels = [("日本語", "幅の広い文字"), ("한국어", "넓은 글자")];
    let text = "どの言語を使いますか？長い質問は折り返されます。";
    let mut bench = Bench::new(
        40,
        14,
        vec![ask(1, vec![question("言語", text, &labels, Selection::One)])],
    );
    bench.press(KeyCode::Enter);
    bench.type_text("中文也可以");
    assert_snapshot!(bench.picture(), @r"
    1/1 baaaa questions, 4m left
    どの言語を使いますか？長い質問は折り返さ
    れます。
     1 ( ) 日本語: 幅の広い文字
     2 ( ) 한국어: 넓은 글자
    >  (x) Other, in your own words:
    > 中文也可以




    Enter next  ^J new line  ↑ options
    ^X abort  PgUp/PgDn scroll  Esc list
    ^C quit
    ");
}

#[test]
fn a_key_in_the_grace_is_noted() {
    let mut bench = Bench::new(60, 16, vec![install(1), install(2)]);
    bench.press(KeyCode::Down);
    bench.hit(KeyCode::Char('c'));
    assert_snapshot!(bench.picture(), @r"
      2 wait          project         agent           age  left
      baaaa install   service         claude-code 2.1 1m   4m
    > caaaa install   service         claude-code 2.1 1m   4m
    ── caaaa install, 4m left  ↓ 1-8 of 14 ─────────────────────
    Install and run serena@0.5.0?
    would run   npm install serena@0.5.0
    scripts     ! install scripts run once you accept them
    wanted for  serena:analyze
    published   75 days ago (2026-08-31T10:11:12Z)
    integrity   sha512-3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZG
                hscHR4fICEiIyQlJic=
    asked by    claude-code 2.1 in /home/me/service
    Too soon: this has just changed. Look, then press the key
    again.
    ↑↓ choose  Enter read  c continue  s session  a always
    x abort  PgUp/PgDn scroll  h history  q quit
    ");
}

#[test]
fn an_ask_that_was_answered_elsewhere() {
    let card = ask(1, vec![database()]);
    let mut bench = Bench::new(80, 24, vec![card.clone(), install(2)]);
    bench.press(KeyCode::Enter);
    bench.type_text("my own words");
    bench.send(Message::Changed(vec![answered(&card, "SQLite")]));
    assert_snapshot!(bench.picture(), @r"
      1 waits         project                   agent                     age  left
    >*baaaa questions service                   claude-code 2.1           1m   done
      caaaa install   service                   claude-code 2.1           1m   4m
    ── baaaa questions ─────────────────────────────────────────────────────────────
    ANSWERED by dialog, 1s ago: SQLite
    What you prepared was not sent:
    my own words

    Which database?
     1 ( ) Postgres: runs already
     2 ( ) SQLite: one file
       (x) Other, in your own words

    asked by    claude-code 2.1 in /home/me/service








    baaaa was answered first by dialog.
    Enter next ask  ↑↓ scroll  Esc list  ^C quit
    ");
    bench.press(KeyCode::Esc);
    bench.letter('h');
    assert_snapshot!(bench.picture(), @r"
      answered lately project                   agent                     age  is
    >*baaaa questions service                   claude-code 2.1           1m   done
    ── baaaa questions ─────────────────────────────────────────────────────────────
    ANSWERED by dialog, 2s ago: SQLite
    What you prepared was not sent:
    my own words

    Which database?
     1 ( ) Postgres: runs already
     2 ( ) SQLite: one file
       (x) Other, in your own words

    asked by    claude-code 2.1 in /home/me/service










    ↑↓ choose  PgUp/PgDn scroll  Esc back  q quit
    ");
}

#[test]
fn nothing_waits() {
    let bench = Bench::new(60, 8, Vec::new());
    assert_snapshot!(bench.picture(), @r"
      nothing waits   project         agent           age  left
    ────────────────────────────────────────────────────────────
    Nothing waits for you. New asks appear here by themselves.




    h history  q quit
    ");
}

#[test]
fn without_colours_the_same_is_said_and_no_cell_has_one() {
    use ratatui::style::Color;
    let mut bench = Bench::new(80, 24, vec![install(1), ask(2, vec![database()])]);
    let plain = bench.picture();
    let colours = |bench: &Bench| {
        let mut terminal = ratatui::Terminal::new(ratatui::backend::TestBackend::new(80, 24)).unwrap();
        terminal
            .draw(|frame| super::view::draw(&bench.screen, frame))
            .unwrap();
        let cells = terminal.backend().buffer().content();
        cells
            .iter()
            .filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
            .count()
    };
    assert_eq!(colours(&bench), 0);
    bench.screen.palette = Palette::Colours;
    assert!(colours(&bench) > 0);
    assert_eq!(bench.picture(), plain);
}
