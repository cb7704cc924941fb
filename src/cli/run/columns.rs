//! Text in the columns of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns how many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Cuts the end of a text, so that it takes at most so many columns.
pub(super) fn head(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1;
    for letter in text.chars() {
        taken += letter.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        kept.push(letter);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// Cuts the beginning of a text, so that it takes at most so many columns.
pub(super) fn tail(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = Vec::new();
    let mut taken = 1;
    for letter in text.chars().rev() {
        taken += letter.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        kept.push(letter);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept.into_iter().rev().collect()
}

/// Breaks a line into rows of at most so many columns.
pub(super) fn rows(line: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut rows = Vec::new();
    let (mut row, mut taken) = (String::new(), 0);
    for letter in line.chars() {
        let wide = letter.width().unwrap_or(0);
        if taken + wide > columns {
            rows.push(std::mem::take(&mut row));
            taken = 0;
        }
        row.push(letter);
        taken += wide;
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_at_either_end_and_wide_letters_count_twice() {
        assert_eq!(head("abcdef", 6), "abcdef");
        assert_eq!(head("abcdef", 4), "abc…");
        assert_eq!(tail("abcdef", 4), "…def");
        assert_eq!(head("日本語", 5), "日本…");
        assert_eq!(tail("日本語", 4), "…語");
        assert_eq!(head("abc", 0), "");
        assert_eq!(rows("日本語x", 4), ["日本", "語x"]);
        assert_eq!(rows("", 4), [""]);
    }
}
