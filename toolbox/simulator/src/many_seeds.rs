//! Many seeds: reliability R29 in its full form, for a game whose test does one seed.

/// Ten ignored tests of a hundred seeds each, `r29_seeds_0_to_99` and so on, which can be run one by one. For each seed
/// `$check` is called with the seed and with how many workers are to do the same as one: 2 and 8 in turns.
///
/// ```no_run
/// fn check(seed: u64, workers_count: usize) {
///     // Runs the game once on one worker and once on these, and holds the hashes against each other.
///     # let _ = (seed, workers_count);
/// }
///
/// throng_simulator::of_many_seeds!(check);
/// ```
#[macro_export]
macro_rules! of_many_seeds {
    ($check:expr) => {
        $crate::of_many_seeds! { $check;
            r29_seeds_0_to_99: 0..100,
            r29_seeds_100_to_199: 100..200,
            r29_seeds_200_to_299: 200..300,
            r29_seeds_300_to_399: 300..400,
            r29_seeds_400_to_499: 400..500,
            r29_seeds_500_to_599: 500..600,
            r29_seeds_600_to_699: 600..700,
            r29_seeds_700_to_799: 700..800,
            r29_seeds_800_to_899: 800..900,
            r29_seeds_900_to_999: 900..1_000,
        }
    };
    ($check:expr; $($name:ident: $seeds:expr,)*) => {$(
        #[test]
        #[ignore = "full form: a tenth of it, some minutes"]
        fn $name() {
            for seed in $seeds {
                $check(seed, if seed % 2 == 0 { 2 } else { 8 });
            }
        }
    )*};
}
