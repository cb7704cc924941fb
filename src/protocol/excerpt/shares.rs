//! Shares of a room: each gets what it needs if that is little, and the largest get the same.

/// The least and the most that one of several can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) least: usize,
    pub(super) most: usize,
}

/// Divides `total` among needs, of which the least together are no more than it.
///
/// All get as much as the level to which the room fills them up, within their bounds; what is left goes to the first
/// that can use it. With a larger total no share is smaller.
pub(super) fn divide(needs: &[Need], total: usize) -> Vec<usize> {
    let within = |need: &Need, level: usize| level.max(need.least).min(need.most);
    let taken = |level: usize| {
        needs
            .iter()
            .fold(0_usize, |sum, need| sum.saturating_add(within(need, level)))
    };
    let (mut level, mut above) = (0, total.saturating_add(1));
    while above - level > 1 {
        let middle = level + (above - level) / 2;
        if taken(middle) <= total {
            level = middle;
        } else {
            above = middle;
        }
    }
    let mut spare = total.saturating_sub(taken(level));
    let shares = needs.iter().map(|need| {
        let more = spare.min(within(need, level.saturating_add(1)) - within(need, level));
        spare -= more;
        within(need, level) + more
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn needs() -> impl Strategy<Value = Vec<Need>> {
        let need = (0..20_usize, 0..60_usize);
        prop::collection::vec(
            need.prop_map(|(least, more)| Need {
                least,
                most: least + more,
            }),
            0..8,
        )
    }

    #[test]
    fn little_needs_are_met_and_the_largest_get_the_same() {
        let needs = [5, 40, 12, usize::MAX].map(|most| Need { least: 0, most });
        assert_eq!(divide(&needs, 60), [5, 22, 12, 21]);
        assert_eq!(divide(&needs, 17), [5, 4, 4, 4]);
        assert_eq!(divide(&[], 9), Vec::<usize>::new());
    }

    proptest! {
        #[test]
        fn shares_use_the_room_and_never_shrink_with_it(needs in needs(), more in 0..400_usize) {
            let total = more + needs.iter().map(|need| need.least).sum::<usize>();
            let shares = divide(&needs, total);
            let wanted: usize = needs.iter().map(|need| need.most).sum();
            prop_assert_eq!(shares.iter().sum::<usize>(), total.min(wanted));
            let larger = divide(&needs, total + 1);
            for ((share, larger), need) in shares.iter().zip(&larger).zip(&needs) {
                prop_assert!(larger >= share && *share >= need.least && *share <= need.most);
            }
            // None that wants more than it got has less than one that got more than it must.
            for (one, need) in shares.iter().zip(&needs).filter(|(one, need)| **one < need.most) {
                for (other, least) in shares.iter().zip(needs.iter().map(|need| need.least)) {
                    prop_assert!(*other <= one + 1 || *other == least, "{need:?} {shares:?}");
                }
            }
        }
    }
}
