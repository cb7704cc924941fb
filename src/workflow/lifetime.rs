//! Decides whether an ask is live: one rule for the machine, the store and every condition in SQL.
//!
//! An ask lives from the moment it was created to its deadline. One that was created later than now was made before
//! the clock was set back: by this clock its deadline is further away than a person was promised, so it is over.

use super::Timestamp;

/// The same rule as [`Lifetime::is_live_at`], on a row; its first parameter is now.
pub(super) const LIVE: &str = "(created_at <= ?1 AND ?1 < expires_at)";

/// From when to when an ask can be answered and taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    /// The moment it was created.
    pub created_at: Timestamp,
    /// The moment from which on it is over.
    pub expires_at: Timestamp,
}

impl Lifetime {
    /// Tells whether an ask with this lifetime is live at `now`.
    #[must_use]
    pub fn is_live_at(self, now: Timestamp) -> bool {
        self.created_at <= now && now < self.expires_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lifetime(created_at: i64, expires_at: i64) -> Lifetime {
        Lifetime {
            created_at: Timestamp::from_millis(created_at),
            expires_at: Timestamp::from_millis(expires_at),
        }
    }

    #[test]
    fn an_ask_lives_from_its_creation_to_its_deadline_and_not_before() {
        let live = |now| lifetime(100, 200).is_live_at(Timestamp::from_millis(now));
        assert_eq!(
            [i64::MIN, 99, 100, 199, 200, i64::MAX].map(live),
            [false, false, true, true, false, false]
        );
    }

    proptest! {
        #[test]
        fn the_condition_in_sql_is_the_same_rule(
            created_at in -3_i64..3, life in 0_i64..4, now in -4_i64..8,
        ) {
            let expires_at = created_at + life;
            let connection = rusqlite::Connection::open_in_memory().unwrap();
            let query = format!("SELECT {LIVE} FROM (SELECT ?2 AS created_at, ?3 AS expires_at)");
            let live: bool = connection
                .query_row(&query, [now, created_at, expires_at], |row| row.get(0))
                .unwrap();
            prop_assert_eq!(live, lifetime(created_at, expires_at).is_live_at(Timestamp::from_millis(now)));
        }
    }
}
