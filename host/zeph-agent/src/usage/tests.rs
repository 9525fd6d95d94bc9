use super::{Cost, Prices, Usage};

const USAGE: Usage = Usage {
    input: 1_000,
    cache_read: 10_000,
    cache_write: 2_000,
    output: 500,
    reasoning: 300,
    estimated: 0,
};

#[test]
fn the_parts_do_not_overlap() {
    assert_eq!((USAGE.prompt(), USAGE.total()), (13_000, 13_500));
    let twice: Usage = [USAGE, USAGE].into_iter().sum();
    assert_eq!(twice.total(), 27_000);
}

#[test]
fn a_cost_is_exact_and_sums_do_not_drift() {
    let prices = Prices {
        input: Some(3.0),
        output: Some(15.0),
        cache_read: Some(0.3),
        cache_write: Some(3.75),
    };
    let cost = prices.cost(&USAGE).unwrap();
    assert_eq!(cost, Cost::from_usd(0.003 + 0.003 + 0.0075 + 0.0075));
    let sum = (0..10_000).fold(Cost::default(), |sum, _| sum + cost);
    assert_eq!(sum, Cost::from_usd(210.0));
    assert_eq!(sum.to_string(), "$210.0000");
}

#[test]
fn prices_that_are_missing_are_those_of_the_request_or_no_cost_at_all() {
    let prices = Prices {
        input: Some(1.0),
        output: Some(2.0),
        ..Prices::default()
    };
    assert_eq!(prices.cost(&USAGE), Some(Cost::from_usd(0.014)));
    let half = Prices {
        input: Some(1.0),
        ..Prices::default()
    };
    assert_eq!(half.cost(&USAGE), None);
}
