use super::*;
use pretty_assertions::assert_eq;

const DEADLINE: Timestamp = Timestamp::from_millis(1_000);
