use std::collections::BTreeSet;

use proptest::prelude::*;

use super::LineSet;

proptest! {
    #[test]
    fn ranges_hold_what_was_added_line_by_line_or_together(
        single in prop::collection::vec(0..300_usize, 0..20),
        together in prop::collection::vec((0..300_usize, 0..150_usize), 0..4),
        (start, n) in (0..400_usize, 0..200_usize),
    ) {
        let (mut set, mut expect) = (LineSet::default(), BTreeSet::new());
        for line_idx in single {
            set.insert(line_idx);
            expect.insert(line_idx);
        }
        for (first, n) in together {
            set.insert_all(first..first + n);
            expect.extend(first..first + n);
        }
        let range = start..start + n;
        let within: Vec<usize> = expect.range(range.clone()).copied().collect();
        prop_assert_eq!(set.n_within(range.clone()), within.len());
        prop_assert_eq!(set.within(range).collect::<Vec<_>>(), within);
        prop_assert!((0..500).all(|line_idx| set.contains(line_idx) == expect.contains(&line_idx)));
    }
}
