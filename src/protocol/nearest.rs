//! Finds what was probably meant by a name that is not known.
//!
//! Each comparison costs the product of two lengths, so long names and long lists are not searched: a suggestion is a
//! courtesy, and no peer may make it expensive.

/// Longer than any name that a person or a model mistypes.
const LONGEST: usize = 128;

/// More names than any list from which one is mistyped.
const MOST: usize = 2000;

/// Returns the candidate that `name` was probably meant to be; `None` where the search would be long.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().take(MOST + 1).collect();
    if candidates.len() > MOST {
        return None;
    }
    let lower = name.to_lowercase();
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| {
            (
                strsim::jaro_winkler(&lower, &candidate.to_lowercase()),
                candidate,
            )
        })
        // Below this, suggestions stop being typing errors and start being guesses; in a short name one slip weighs more.
        .filter(|(likeness, candidate)| *likeness >= 0.8 || is_one_slip(&lower, &candidate.to_lowercase()))
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, candidate)| candidate)
}

/// Tells whether one change makes a word the other; of shorter ones than three letters everything is near.
fn is_one_slip(one: &str, other: &str) -> bool {
    one.len() >= 3
        && other.len() >= 3
        && one.len().abs_diff(other.len()) <= 1
        && distance(one, other) == Some(1)
}

/// Returns how many changes make one text the other; `None` where either is too long to be compared.
pub(crate) fn distance(one: &str, other: &str) -> Option<usize> {
    let comparable = one.len() <= LONGEST && other.len() <= LONGEST;
    comparable.then(|| strsim::damerau_levenshtein(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::growth::assert_linear;

    #[test]
    fn a_typing_error_is_recognised_and_a_long_search_is_not_made() {
        assert_eq!(nearest("serenna", ["git", "serena"]), Some("serena"));
        assert_eq!(nearest("serenna", ["git"]), None);
        assert_eq!(nearest("gti", ["serena", "git"]), Some("git"));
        assert_eq!(nearest("gi", ["at"]), None);
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(nearest(&long, [long.as_str()]), None);
        assert_eq!(nearest("serenna", vec!["serena"; MOST + 1]), None);
        assert_eq!((distance("abc", "acb"), distance(&long, "a")), (Some(1), None));
    }

    #[test]
    fn the_search_costs_no_more_than_its_candidates() {
        let candidates = |size: usize| vec!["a".repeat(100); size / 100];
        assert_linear("many candidates", candidates, |candidates| {
            nearest(&"a".repeat(120), candidates.iter().map(String::as_str));
        });
        assert_linear(
            "a long name",
            |size| "a".repeat(size),
            |name| {
                nearest(name, [name.as_str()]);
            },
        );
    }
}
