//! Text on a grid of cells: broken into lines, cut for a table, and durations in a few characters.

use std::time::Duration;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// A tab takes as many columns here as in most terminals half of the time; a cell cannot hold it.
const TAB: &str = "    ";

/// Breaks a text into lines of at most `width` columns, at spaces where it can; every character is in one of them.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    let text = text.replace('\t', TAB);
    text.split('\n').flat_map(|line| wrap_line(line, width)).collect()
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut current = String::new();
    let mut columns = 0;
    for letter in line.chars() {
        let wide = letter.width().unwrap_or(0);
        // A space at the end of a line hangs over it: it is not seen there, and would be odd at the next beginning.
        while columns > 0 && columns + wide > width && letter != ' ' {
            // What stands after the last space goes to the next line, unless that would leave nothing here.
            let rest = match current.rfind(' ') {
                Some(space) if !current[..space].trim().is_empty() => current.split_off(space + 1),
                _ => String::new(),
            };
            lines.push(std::mem::replace(&mut current, rest));
            columns = current.width();
        }
        current.push(letter);
        columns += wide;
    }
    lines.push(current);
    lines
}

/// Cuts a text to exactly `width` columns: what is too long ends with `…`, what is too short with spaces.
pub(super) fn fit(text: &str, width: usize) -> String {
    let mut fitted = String::new();
    let mut columns = 0;
    if text.width() <= width {
        text.clone_into(&mut fitted);
        columns = text.width();
    } else {
        for letter in text.chars() {
            let wide = letter.width().unwrap_or(0);
            if columns + wide + 1 > width {
                break;
            }
            fitted.push(letter);
            columns += wide;
        }
        if width > 0 {
            fitted.push('…');
            columns += 1;
        }
    }
    fitted.extend(std::iter::repeat_n(' ', width.saturating_sub(columns)));
    fitted
}

/// Says a duration in at most four characters: `45s`, `12m`, `3h`, `20d`.
pub(super) fn short(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=59 => format!("{seconds}s"),
        60..=3_599 => format!("{}m", seconds / 60),
        3_600..=86_399 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", (seconds / 86_400).min(999)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_character_is_lost_and_no_line_is_too_wide(text in "[a-c 漢é\u{301}]{0,80}", width in 2usize..20) {
            let lines = wrap(&text, width);
            prop_assert_eq!(lines.concat(), text);
            for line in lines {
                prop_assert!(line.trim_end().width() <= width, "{line:?}");
            }
        }

        #[test]
        fn a_cell_of_a_table_is_exactly_as_wide_as_its_column(text in "[a-c 漢]{0,20}", width in 0usize..20) {
            prop_assert_eq!(fit(&text, width).width(), width);
        }
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
    }

    #[test]
    fn durations_are_short() {
        let said = [0, 59, 60, 3_600, 86_400, 999_999_999].map(|seconds| short(Duration::from_secs(seconds)));
        assert_eq!(said, ["0s", "59s", "1m", "1h", "1d", "999d"]);
    }
}
