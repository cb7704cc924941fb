//! Lines of a limited width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Breaks a text into lines of at most `columns`, at spaces where there are any.
#[must_use]
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut width = 0;
    for word in text.split_inclusive(' ') {
        let needed = word.trim_end_matches(' ').width();
        if width + needed > columns && width > 0 {
            lines.push(String::new());
            width = 0;
        }
        for piece in pieces(word, columns) {
            let wide = piece.width();
            if width + piece.trim_end_matches(' ').width() > columns && width > 0 {
                lines.push(String::new());
                width = 0;
            }
            width += wide;
            if let Some(line) = lines.last_mut() {
                line.push_str(piece);
            }
        }
    }
    for line in &mut lines {
        line.truncate(line.trim_end_matches(' ').len());
    }
    lines
}

/// Breaks a text into lines of `columns`, anywhere.
#[must_use]
pub fn fold(text: &str, columns: usize) -> Vec<String> {
    pieces(text, columns).into_iter().map(str::to_owned).collect()
}

/// Cuts a text into pieces of at most so many columns.
fn pieces(text: &str, columns: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut from, mut width) = (0, 0);
    for (at, found) in text.char_indices() {
        let wide = found.width().unwrap_or(0);
        if width + wide > columns && at > from {
            pieces.push(&text[from..at]);
            (from, width) = (at, 0);
        }
        width += wide;
    }
    pieces.push(&text[from..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: usize = 74;

    #[test]
    fn lines_break_at_spaces_and_long_words_anywhere() {
        let word = "a".repeat(100);
        let lines = wrap(&format!("short {word} end"), COLUMNS);
        assert_eq!(lines.concat().replace(' ', ""), format!("short{word}end"));
        assert!(lines.iter().all(|line| line.width() <= COLUMNS), "{lines:?}");
        assert_eq!(wrap("", COLUMNS), [""]);
        let wide = "漢".repeat(50);
        assert!(wrap(&wide, COLUMNS).iter().all(|line| line.width() <= COLUMNS));
    }

    #[test]
    fn a_fold_breaks_anywhere_and_loses_nothing() {
        let text = format!("{} b漢", "a ".repeat(100));
        let lines = fold(&text, 9);
        assert_eq!(lines.concat(), text);
        assert!(lines.iter().all(|line| line.width() <= 9), "{lines:?}");
    }
}
