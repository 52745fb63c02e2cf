//! Medians and intervals of data whose answers are known.

use lab::dice::Dice;
use lab::statistics::{estimate, median};

#[test]
fn the_median_is_the_middle_whatever_the_order() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[7.0]), Some(7.0));
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    assert_eq!(median(&[1.0, 1.0, 1000.0]), Some(1.0), "one far out does not move it");
}

#[test]
fn constant_data_has_an_interval_of_no_width() {
    let estimate = estimate(&[2.0; 12], 1).expect("there are values");
    assert_eq!((estimate.median, estimate.interval, estimate.values), (2.0, Some((2.0, 2.0)), 12));
}

#[test]
fn the_interval_has_the_ranks_that_the_binomial_distribution_gives() {
    // Of 1..=99 the median's 95 % interval by order statistics is (40, 60); the bootstrap comes close to it.
    let values: Vec<f64> = (1..=99).map(f64::from).collect();
    let (low, high) = estimate(&values, 7).and_then(|estimate| estimate.interval).expect("enough values");
    assert!((39.0..=42.0).contains(&low), "low end {low}");
    assert!((58.0..=61.0).contains(&high), "high end {high}");
}

#[test]
fn too_few_values_have_no_interval() {
    assert_eq!(estimate(&[], 1), None);
    assert_eq!(estimate(&[1.0, 2.0], 1).expect("a median").interval, None);
    assert!(estimate(&[1.0, 2.0, 3.0], 1).expect("a median").interval.is_some());
}

#[test]
fn one_seed_gives_one_interval() {
    let values = [1.0, 5.0, 2.0, 9.0, 4.0, 7.0, 3.0];
    assert_eq!(estimate(&values, 3), estimate(&values, 3));
}

#[test]
fn shuffling_loses_nothing_and_follows_the_seed() {
    let shuffled = |seed| {
        let mut items: Vec<u32> = (0..50).collect();
        Dice::new(seed).shuffle(&mut items);
        items
    };
    let mut sorted = shuffled(1);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..50).collect::<Vec<_>>());
    assert_eq!(shuffled(1), shuffled(1));
    assert_ne!(shuffled(1), shuffled(2));
}

#[test]
fn every_place_in_an_order_is_as_likely() {
    let mut firsts = [0_u32; 4];
    let mut dice = Dice::new(5);
    for _ in 0..4_000 {
        let mut order = [0, 1, 2, 3];
        dice.shuffle(&mut order);
        firsts[order[0]] += 1;
    }
    assert!(firsts.iter().all(|count| (850..=1150).contains(count)), "{firsts:?}");
}
