//! The last rows of the terminal of a run: the line that the agent is saying, where the run stands, and what is typed.
//!
//! Pure: it returns what is to be written. Whatever is told stands above these rows for good, so that a person scrolls in
//! it as in any other output. A row is never as wide as the terminal: it would hang over.

use std::mem::take;

use super::columns;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Its columns.
    pub(super) columns: usize,
    /// Its rows.
    pub(super) rows: usize,
}

/// The rows at the end of a terminal.
#[derive(Debug, Default)]
pub(super) struct LiveArea {
    /// What the agent says, since the last whole line.
    saying: String,
    status: String,
    prompt: String,
    typed: String,
    /// How wide the rows are that stand on the screen.
    drawn: Vec<usize>,
}

impl LiveArea {
    /// Shows a line above the area.
    pub(super) fn line(&mut self, line: &str, size: Size) -> String {
        let mut text = self.erase(size);
        if !self.saying.is_empty() {
            text.push_str(&take(&mut self.saying));
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
        text + &self.draw(size)
    }

    /// Shows words of the agent: whole lines above the area, the rest in it.
    pub(super) fn say(&mut self, words: &str, size: Size) -> String {
        let mut text = self.erase(size);
        self.saying.push_str(words);
        if let Some(end) = self.saying.rfind('\n') {
            let rest = self.saying.split_off(end + 1);
            text.push_str(&std::mem::replace(&mut self.saying, rest));
        }
        // A paragraph that would fill the screen moves up row by row.
        let mut rows = columns::rows(&self.saying, size.columns.saturating_sub(1));
        let most = size.rows.saturating_sub(4).max(1);
        if rows.len() > most {
            let kept = rows.split_off(rows.len() - most);
            for row in rows {
                text.push_str(&row);
                text.push('\n');
            }
            self.saying = kept.concat();
        }
        text + &self.draw(size)
    }

    /// Shows where the run stands, what a line that is typed is for, and the line.
    pub(super) fn show(&mut self, status: String, prompt: String, typed: &str, size: Size) -> String {
        let typed = typed.replace('\n', "⏎").replace('\t', " ");
        if (&status, &prompt, &typed) == (&self.status, &self.prompt, &self.typed) && !self.drawn.is_empty() {
            return String::new();
        }
        (self.status, self.prompt, self.typed) = (status, prompt, typed);
        self.erase(size) + &self.draw(size)
    }

    /// Draws it anew, for a terminal that has another size now.
    pub(super) fn redraw(&mut self, size: Size) -> String {
        self.erase(size) + &self.draw(size)
    }

    /// Takes it away for good; what the agent was saying stays.
    pub(super) fn end(&mut self, size: Size) -> String {
        let mut text = self.erase(size);
        if !self.saying.is_empty() {
            text.push_str(&take(&mut self.saying));
            text.push('\n');
        }
        text
    }

    fn erase(&mut self, size: Size) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        // In a terminal that became narrower a row stands on several.
        let columns = size.columns.max(1);
        let rows: usize = take(&mut self.drawn)
            .into_iter()
            .map(|width| width.div_ceil(columns).max(1))
            .sum();
        match rows - 1 {
            0 => "\r\x1b[J".to_owned(),
            up => format!("\r\x1b[{up}A\x1b[J"),
        }
    }

    fn draw(&mut self, size: Size) -> String {
        let columns = size.columns.saturating_sub(1).max(2);
        let mut rows = Vec::new();
        if !self.saying.is_empty() {
            rows.extend(columns::rows(&self.saying, columns));
        }
        rows.push(columns::head(&self.status, columns));
        let prompt = columns::head(&self.prompt, columns / 2);
        let room = columns - columns::width(&prompt);
        rows.push(format!("{prompt}{}", columns::tail(&self.typed, room)));
        self.drawn = rows.iter().map(|row| columns::width(row)).collect();
        let status = rows.len() - 2;
        let rows = rows.into_iter().enumerate().map(|(at, row)| {
            if at == status {
                format!("\x1b[2m{row}\x1b[0m")
            } else {
                row
            }
        });
        rows.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { columns: 20, rows: 8 };

    /// The screen after what was written: rows are only ever taken away at the end.
    fn screen(written: &str) -> String {
        let plain = written.replace("\x1b[2m", "").replace("\x1b[0m", "");
        let mut rows = vec![String::new()];
        let mut rest = plain.as_str();
        while let Some(found) = rest.find(['\n', '\r']) {
            rows.last_mut().unwrap().push_str(&rest[..found]);
            if rest[found..].starts_with('\n') {
                rows.push(String::new());
                rest = &rest[found + 1..];
                continue;
            }
            let (up, after) = rest[found + 1..].split_once("\x1b[J").unwrap();
            let up = up.trim_start_matches("\x1b[").trim_end_matches('A');
            let up: usize = if up.is_empty() { 0 } else { up.parse().unwrap() };
            rows.truncate(rows.len() - up - 1);
            rows.push(String::new());
            rest = after;
        }
        rows.last_mut().unwrap().push_str(rest);
        assert!(
            rows.iter().all(|row| columns::width(row) < SIZE.columns),
            "{rows:#?}"
        );
        rows.join("\n").trim_end().to_owned()
    }

    #[test]
    fn what_is_told_stands_above_what_is_typed() {
        let mut area = LiveArea::default();
        let mut written = area.show("working".to_owned(), "> ".to_owned(), "he", SIZE);
        written += &area.say("Hello wor", SIZE);
        assert_eq!(screen(&written), "Hello wor\nworking\n> he");
        written += &area.say("ld.\nNext", SIZE);
        written += &area.show("working".to_owned(), "> ".to_owned(), "hey", SIZE);
        assert_eq!(screen(&written), "Hello world.\nNext\nworking\n> hey");
        written += &area.line("> Bash  ls", SIZE);
        assert_eq!(screen(&written), "Hello world.\nNext\n> Bash  ls\nworking\n> hey");
        written += &area.end(SIZE);
        assert_eq!(screen(&written), "Hello world.\nNext\n> Bash  ls");
    }

    #[test]
    fn nothing_is_wider_than_the_terminal_and_a_long_paragraph_moves_up() {
        let mut area = LiveArea::default();
        let status = "working · turn 1 · claude".to_owned();
        let mut written = area.show(status, "answer abcde> ".to_owned(), "a very long line", SIZE);
        assert_eq!(screen(&written), "working · turn 1 ·…\nanswer a……long line");
        written += &area.say(&"x".repeat(19 * 6), SIZE);
        let shown = screen(&written);
        assert_eq!(
            shown.lines().take_while(|line| line.len() == 19).count(),
            6,
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 8, "{shown}");
    }

    #[test]
    fn a_narrower_terminal_leaves_nothing_behind() {
        let mut area = LiveArea::default();
        area.show("a status of nineteen".to_owned(), "> ".to_owned(), "", SIZE);
        let narrow = Size { columns: 10, rows: 8 };
        // The status stands on two rows there.
        assert!(area.redraw(narrow).starts_with("\r\x1b[2A\x1b[J"));
    }
}
