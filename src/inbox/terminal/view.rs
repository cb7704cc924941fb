//! Draws the state.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui_textarea::TextArea;
use unicode_width::UnicodeWidthStr as _;

use super::body::Row;
use super::layout::{Layout, position};
use super::queue;
use super::state::{Mode, Screen};
use super::text::fit;
use super::theme::{Palette, Tone};

/// Draws the screen.
pub fn draw(screen: &Screen, frame: &mut Frame<'_>) {
    let layout = Layout::of(screen);
    let width = usize::from(screen.size.width);
    let palette = screen.palette;
    let low = layout.rule.height == 0;
    let heading = if low {
        // The list gave way: its place tells where in it the card is.
        let (cards, selected) = queue::listed(screen);
        let place = cards.iter().position(|card| Some(card.id) == selected);
        let place = place.map_or(0, |place| place + 1);
        format!("{place}/{}{}", cards.len(), position(screen, &layout))
    } else {
        queue::heading(screen, width)
    };
    frame.render_widget(
        Paragraph::new(Line::styled(fit(&heading, width), palette.style(Tone::Title))),
        layout.heading,
    );
    let rows = queue::rows(screen, width, usize::from(layout.queue.height));
    write(frame, layout.queue, palette, &rows);
    let rule = position(screen, &layout);
    let rest = width.saturating_sub(rule.width() + 2);
    let rule = format!("──{rule}{}", "─".repeat(rest));
    frame.render_widget(
        Paragraph::new(Line::styled(rule, palette.style(Tone::Label))),
        layout.rule,
    );
    let seen = layout.body.rows.iter().skip(screen.scroll);
    let seen: Vec<Row> = seen.take(usize::from(layout.card.height)).cloned().collect();
    write(frame, layout.card, palette, &seen);
    write(frame, layout.prompt, palette, &layout.prompt_rows);
    write(frame, layout.footer, palette, &layout.footer_rows);
    field(screen, &layout, frame);
}

/// Draws the text that is being typed, behind a sign that says so.
fn field(screen: &Screen, layout: &Layout, frame: &mut Frame<'_>) {
    let Some(draft) = screen.draft() else { return };
    let area = layout.field;
    if area.height == 0 || area.width < 4 {
        return;
    }
    let (text, typing) = match (screen.mode(), draft.current()) {
        (Mode::Reason, _) => (&draft.reason, true),
        (Mode::Text, Some(current)) => (&current.text, true),
        (Mode::Options, Some(current)) => (&current.text, false),
        _ => return,
    };
    let mut text: TextArea<'_> = text.clone();
    text.set_cursor_line_style(Style::new());
    text.set_cursor_style(if typing {
        Style::new().add_modifier(Modifier::REVERSED)
    } else {
        Style::new()
    });
    let sign = if typing { "> " } else { "| " };
    let signs: Vec<Row> = (0..area.height)
        .map(|_| vec![(Tone::Command, sign.to_owned())])
        .collect();
    write(frame, Rect { width: 2, ..area }, screen.palette, &signs);
    let inner = Rect {
        x: area.x + 2,
        width: area.width - 2,
        ..area
    };
    frame.render_widget(&text, inner);
}

fn write(frame: &mut Frame<'_>, area: Rect, palette: Palette, rows: &[Row]) {
    let lines = rows.iter().map(|row| {
        let spans = row
            .iter()
            .map(|(tone, text)| Span::styled(text.as_str(), palette.style(*tone)));
        Line::from(spans.collect::<Vec<_>>())
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}
