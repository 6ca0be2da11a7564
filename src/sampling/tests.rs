//! The sampler as a whole, through its public interface.

use proptest::prelude::*;

use super::live::Live;
use super::pool::Pool;
use super::*;
use crate::TokenId;

const NEVER: f32 = f32::NEG_INFINITY;
const DRAWS: usize = 20_000;

fn sampler(params: SamplingParams, vocab_size: usize, seed: u64) -> Sampler {
    Sampler::new(params, vocab_size, seed, &[], DryBreakers::none())
}

fn plain(row: &[f32]) -> SampleInput<'_> {
    SampleInput { row, mask: None, banned: &[] }
}

/// How often each token is drawn in 20,000 draws.
fn frequencies(params: SamplingParams, row: &[f32]) -> Vec<usize> {
    let mut sampler = sampler(params, row.len(), 17);
    let mut counts = vec![0; row.len()];
    for _ in 0..DRAWS {
        counts[sampler.sample(plain(row)).unwrap() as usize] += 1;
    }
    counts
}

/// Five standard deviations around the expected count.
fn assert_share(count: usize, share: f64) {
    let expected = share * DRAWS as f64;
    let deviation = (expected * (1.0 - share)).sqrt();
    let off = (count as f64 - expected).abs();
    assert!(off <= 5.0 * deviation, "{count} of {DRAWS} draws, expected {expected:.0}");
}

fn at(temperature: f32) -> SamplingParams {
    SamplingParams { temperature, ..Default::default() }
}

#[test]
fn the_tail_that_top_p_keeps_stays_rare() {
    let params = SamplingParams { top_p: 0.5, min_keep: 3, ..at(1.0) };
    let counts = frequencies(params, &[10.0, 0.0, 0.0]);
    // 4.54e-5 each: both together are expected 1.8 times; 12 has a chance of one in ten million.
    assert!(counts[1] + counts[2] <= 12, "{counts:?}");
}

#[test]
fn draws_follow_the_softmax() {
    let counts = frequencies(at(1.0), &[3.0_f32.ln(), 0.0, 0.0]);
    assert_share(counts[0], 0.6);
    assert_share(counts[1], 0.2);
    assert_share(counts[2], 0.2);
}

#[test]
fn temperature_divides_the_logits() {
    for row in [[3.0_f32.ln(), 0.0, 0.0], [3.0_f32.ln() - 50.0, -50.0, -50.0]] {
        let counts = frequencies(at(0.5), &row);
        assert_share(counts[0], 9.0 / 11.0);
        assert_share(counts[1], 1.0 / 11.0);
        assert_share(counts[2], 1.0 / 11.0);
    }
}

#[test]
fn lists_are_drawn_like_rows() {
    let params = SamplingParams { top_k: 3, ..at(0.5) };
    let counts = frequencies(params, &[0.0, NEVER, 3.0_f32.ln(), -60.0, 0.0]);
    assert_share(counts[2], 9.0 / 11.0);
    assert_share(counts[0], 1.0 / 11.0);
    assert_share(counts[4], 1.0 / 11.0);
}

#[test]
fn xtc_fires_with_its_probability() {
    let params = SamplingParams { xtc_probability: 0.25, xtc_threshold: 0.3, ..at(1.0) };
    // 0.5, 0.4, 0.1: where it fires the best goes and 0.8, 0.2 are left.
    let counts = frequencies(params, &[0.5_f32.ln(), 0.4_f32.ln(), 0.1_f32.ln()]);
    assert_share(counts[0], 0.75 * 0.5);
    assert_share(counts[1], 0.75 * 0.4 + 0.25 * 0.8);
    assert_share(counts[2], 0.75 * 0.1 + 0.25 * 0.2);
}

#[test]
fn dynamic_temperature_scales_the_draw() {
    let (row, p): (Vec<f32>, f64) = (vec![3.0_f32.ln(), 0.0, 0.0], 0.6);
    let entropy = -(p * p.ln() + 0.4 * 0.2_f64.ln());
    let temperature = 0.5 + 1.0 * (entropy / 3.0_f64.ln());
    let head = 3.0_f64.powf(1.0 / temperature);
    for top_k in [0, 3] {
        let params = SamplingParams { dynatemp_range: 0.5, top_k, ..at(1.0) };
        let counts = frequencies(params, &row);
        let long = [row.clone(), vec![NEVER]].concat();
        assert_share(counts[0], head / (head + 2.0));
        let params = SamplingParams { dynatemp_range: 0.5, top_k, ..at(1.0) };
        assert_eq!(frequencies(params, &long)[..3], counts);
    }
}

#[test]
fn a_dynamic_temperature_of_zero_takes_the_best() {
    for top_k in [0, 2] {
        let params = SamplingParams { dynatemp_range: 2.0, top_k, ..at(0.5) };
        let row = [0.0, 500.0, 0.0];
        assert_eq!(frequencies(params, &row), [0, DRAWS, 0]);
    }
}

#[test]
fn greedy_takes_the_lowest_of_a_tie() {
    let mut row = vec![0.0; 1000];
    for token in [900, 500, 130] {
        row[token] = 1.0;
        assert_eq!(sampler(at(0.0), 1000, 0).sample(plain(&row)), Ok(token as TokenId));
    }
    let mask = [vec![0; 8], vec![u32::MAX; 40]].concat();
    let input = SampleInput { row: &row, mask: Some(&mask), banned: &[500] };
    assert_eq!(sampler(at(0.0), 1000, 0).sample(input), Ok(900));
}

#[test]
fn greedy_ignores_the_filters_and_takes_no_draw() {
    let params =
        SamplingParams { xtc_probability: 1.0, xtc_threshold: 0.1, typical_p: 0.01, ..at(0.0) };
    let mut greedy = sampler(params, 3, 5);
    for _ in 0..10 {
        assert_eq!(greedy.sample(plain(&[1.0, 0.9, 0.8])), Ok(0));
    }
}

#[test]
fn bias_forces_and_forbids() {
    let biased = |bias: Vec<(TokenId, f32)>, temperature: f32| {
        let params = SamplingParams { logit_bias: bias, ..at(temperature) };
        frequencies(params, &[20.0, 3.0, -5.0])
    };
    for temperature in [0.0, 1.0] {
        assert_eq!(biased(vec![(2, 100.0)], temperature), [0, 0, DRAWS]);
        assert_eq!(biased(vec![(0, -100.0), (77, 100.0)], temperature)[0], 0);
    }
    assert_eq!(biased(vec![(0, -100.0)], 0.0), [0, DRAWS, 0]);
}

#[test]
fn bias_and_penalties_do_not_touch_the_row() {
    let row = vec![1.0, 2.0, 3.0];
    let params = SamplingParams {
        logit_bias: vec![(0, 5.0)],
        repetition_penalty: 1.5,
        presence_penalty: 1.0,
        ..at(0.7)
    };
    let mut sampler = sampler(params, 3, 1);
    sampler.accept(2);
    sampler.sample(SampleInput { row: &row, mask: Some(&[3]), banned: &[1] }).unwrap();
    assert_eq!(row, [1.0, 2.0, 3.0]);
}

#[test]
fn accepted_tokens_are_penalised_and_sampled_ones_are_not_yet() {
    let params = SamplingParams { presence_penalty: 2.0, ..at(0.0) };
    let mut sampler = sampler(params, 3, 0);
    let row = [3.0, 2.0, 1.5];
    assert_eq!(sampler.sample(plain(&row)), Ok(0));
    assert_eq!(sampler.sample(plain(&row)), Ok(0));
    sampler.accept(0);
    assert_eq!(sampler.sample(plain(&row)), Ok(1));
    sampler.accept(1);
    assert_eq!(sampler.sample(plain(&row)), Ok(2));
    sampler.accept(2);
    assert_eq!(sampler.sample(plain(&row)), Ok(0));
}

#[test]
fn a_penalised_token_is_still_taken_where_the_grammar_leaves_no_other() {
    let dry = DryParams {
        multiplier: 1.0,
        base: 1e30,
        allowed_length: 1,
        sequence_breakers: Vec::new(),
        ..Default::default()
    };
    for temperature in [0.0, 1.0] {
        let params = SamplingParams { dry: dry.clone(), ..at(temperature) };
        let mut sampler = Sampler::new(params, 2, 0, &[0; 50], DryBreakers::none());
        assert_eq!(sampler.sample(plain(&[9.0, 0.0])), Ok(1));
        let only = SampleInput { row: &[-9.0, 0.0], mask: Some(&[1]), banned: &[] };
        assert_eq!(sampler.sample(only), Ok(0));
    }
}

#[test]
fn nothing_allowed_is_an_empty_mask() {
    let row = [1.0, 2.0, NEVER];
    let masked = |mask, banned| SampleInput { row: &row, mask: Some(mask), banned };
    let cases = [
        masked(&[0], &[]),
        masked(&[], &[]),
        masked(&[0b100], &[]),
        masked(&[0b1000], &[]),
        masked(&[0b011], &[0, 1]),
        plain(&[NEVER; 3]),
    ];
    for temperature in [0.0, 1.0] {
        for top_k in [0, 2] {
            for input in cases {
                let mut sampler = sampler(SamplingParams { top_k, ..at(temperature) }, 3, 0);
                assert_eq!(sampler.sample(input), Err(SampleError::EmptyMask), "{input:?}");
            }
        }
    }
}

#[test]
fn faults_are_found_masked_or_not() {
    for fault in [f32::NAN, f32::INFINITY] {
        for (mask, banned) in [
            (None, &[][..]),
            (None, &[1][..]),
            (Some(&[0b111][..]), &[][..]),
            (Some(&[0b001][..]), &[][..]),
            (Some(&[][..]), &[][..]),
        ] {
            for temperature in [0.0, 1.0] {
                let params = SamplingParams { presence_penalty: 1.0, ..at(temperature) };
                let mut sampler = sampler(params, 3, 0);
                let row = [1.0, fault, 2.0];
                let input = SampleInput { row: &row, mask, banned };
                assert_eq!(sampler.sample(input), Err(SampleError::NonFinite));
                sampler.accept(1);
                assert_eq!(sampler.sample(input), Err(SampleError::NonFinite));
            }
        }
    }
}

#[test]
fn parameters_out_of_range_fail_and_do_not_guess() {
    let nan_bias = SamplingParams { logit_bias: vec![(0, f32::NAN)], ..at(1.0) };
    let divides_by_zero = SamplingParams { repetition_penalty: 0.0, ..at(1.0) };
    for params in [nan_bias, divides_by_zero] {
        let mut sampler = sampler(params, 2, 0);
        sampler.accept(0);
        assert_eq!(sampler.sample(plain(&[1.0, 2.0])), Err(SampleError::NonFinite));
    }
}

#[test]
fn a_row_of_another_length_is_refused() {
    for found in [0, 2, 4] {
        let row = vec![0.0; found];
        let error = SampleError::RowLength { expected: 3, found };
        assert_eq!(sampler(at(1.0), 3, 0).sample(plain(&row)), Err(error));
    }
}

#[test]
fn the_first_draws_of_a_seed_are_pinned() {
    let mut rng = fastrand::Rng::with_seed(42);
    let draws = [rng.f64(), rng.f64(), rng.f64()];
    assert_eq!(draws, GOLDEN_UNIFORM);

    let row: Vec<f32> = (0..64).map(|i| (i * 37 % 64) as f32 / 16.0).collect();
    let filtered =
        SamplingParams { top_k: 40, top_p: 0.95, min_p: 0.05, xtc_probability: 0.5, ..at(0.8) };
    for (params, golden) in [(at(1.0), GOLDEN_PLAIN), (filtered, GOLDEN_FILTERED)] {
        let mut sampler = sampler(params, 64, 42);
        let tokens: Vec<_> = (0..8).map(|_| sampler.sample(plain(&row)).unwrap()).collect();
        assert_eq!(tokens, golden);
    }
}

const GOLDEN_UNIFORM: [f64; 3] = [0.790799646746195, 0.49358594913977205, 0.804458730791085];
const GOLDEN_PLAIN: [TokenId; 8] = [50, 31, 50, 4, 36, 29, 57, 24];
const GOLDEN_FILTERED: [TokenId; 8] = [24, 19, 5, 50, 12, 39, 43, 32];

#[test]
fn forced_tokens_take_no_draw() {
    let row: Vec<f32> = (0..50).map(|i| (i % 7) as f32).collect();
    let mut forced = sampler(at(1.0), 50, 3);
    let mut plain_sampler = sampler(at(1.0), 50, 3);
    for token in 0..20 {
        forced.accept(token);
        assert_eq!(forced.sample(plain(&row)), plain_sampler.sample(plain(&row)));
    }
}

/// What is left when the draw comes, through the same code as [`Sampler::sample`].
fn kept(input: &SampleInput<'_>, params: &SamplingParams, excludes: bool) -> Vec<TokenId> {
    let mut live = Live::default();
    let view = live.view(input, None::<fn(&mut [f32])>).unwrap();
    let left = Pool::default().left(view.values, params, excludes);
    left.iter().map(|&index| view.token(index).unwrap()).collect()
}

fn assert_like_reference(
    input: &SampleInput<'_>,
    params: &SamplingParams,
    excludes: bool,
) -> Result<(), TestCaseError> {
    // A case in which a threshold falls on a candidate could go either way by rounding.
    let expected = reference::kept(input, params, excludes, 0.0);
    prop_assume!(!expected.is_empty());
    for margin in [-1e-5, 1e-5] {
        prop_assume!(reference::kept(input, params, excludes, margin) == expected);
    }
    prop_assert_eq!(kept(input, params, excludes), expected);
    Ok(())
}

#[test]
fn typical_may_pass_over_the_best_for_the_tail() {
    // The best token has 0.4, three thousand equal ones share 0.6. Their surprise is closer to the
    // entropy, so they alone fill the 0.2501: 1250.5 of them.
    let mut row = vec![(0.6_f32 / 3000.0).ln(); 3001];
    row[0] = 0.4_f32.ln();
    let params = SamplingParams { typical_p: 0.2501, ..at(1.0) };
    let expected: Vec<TokenId> = (1..=1251).collect();
    assert_eq!(kept(&plain(&row), &params, false), expected);
    assert_eq!(reference::kept(&plain(&row), &params, false, 0.0), expected);
}

/// Rows peaked like a model's, with ties and impossible tokens; short ones and ones of many blocks.
fn rows() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        8 => -12.0_f32..4.0,
        1 => (0..8_i32).prop_map(|step| step as f32),
        1 => Just(NEVER),
    ];
    let lengths = prop_oneof![1..40_usize, 200..3000_usize];
    (lengths, 0.0_f32..12.0).prop_flat_map(move |(length, peak)| {
        (proptest::collection::vec(logit.clone(), length), 0..length).prop_map(
            move |(mut row, place)| {
                row[place] = peak;
                row
            },
        )
    })
}

fn masks() -> impl Strategy<Value = Option<Vec<u32>>> {
    let word = prop_oneof![3 => Just(0), 1 => any::<u32>(), 1 => Just(u32::MAX)];
    let sparse = prop_oneof![30 => Just(0), 1 => any::<u32>()];
    prop_oneof![
        Just(None),
        proptest::collection::vec(word, 0..110).prop_map(Some),
        proptest::collection::vec(sparse, 0..110).prop_map(Some),
    ]
}

fn one_of(neutral: f32, range: std::ops::Range<f32>) -> impl Strategy<Value = f32> {
    prop_oneof![Just(neutral), range]
}

prop_compose! {
    fn filters()(
        top_n_sigma in one_of(0.0, 0.1..3.0),
        top_k in prop_oneof![Just(0_u32), 1..100_u32],
        typical_p in one_of(1.0, 0.05..0.99),
        top_p in one_of(1.0, 0.05..0.99),
        min_p in one_of(0.0, 0.001..0.9),
        xtc_threshold in 0.01_f32..0.5,
        min_keep in prop_oneof![2 => Just(1_u32), 1 => 2..30_u32],
    ) -> SamplingParams {
        SamplingParams {
            top_n_sigma, top_k, typical_p, top_p, min_p, xtc_threshold, min_keep, ..at(1.0)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_global_rejects: 100_000, ..Default::default() })]

    #[test]
    fn top_n_sigma_like_reference(row in rows(), top_n_sigma in 0.05_f32..4.0) {
        let params = SamplingParams { top_n_sigma, ..at(1.0) };
        assert_like_reference(&plain(&row), &params, false)?;
    }

    #[test]
    fn top_k_like_reference(row in rows(), top_k in 1..400_u32) {
        assert_like_reference(&plain(&row), &SamplingParams { top_k, ..at(1.0) }, false)?;
    }

    #[test]
    fn typical_like_reference(row in rows(), typical_p in 0.02_f32..1.0, min_keep in 1..40_u32) {
        let params = SamplingParams { typical_p, min_keep, ..at(1.0) };
        assert_like_reference(&plain(&row), &params, false)?;
    }

    #[test]
    fn top_p_like_reference(row in rows(), top_p in 0.02_f32..1.0, min_keep in 1..40_u32) {
        let params = SamplingParams { top_p, min_keep, ..at(1.0) };
        assert_like_reference(&plain(&row), &params, false)?;
    }

    #[test]
    fn min_p_like_reference(row in rows(), min_p in 0.0001_f32..1.0, min_keep in 1..40_u32) {
        let params = SamplingParams { min_p, min_keep, ..at(1.0) };
        assert_like_reference(&plain(&row), &params, false)?;
    }

    #[test]
    fn xtc_like_reference(row in rows(), xtc_threshold in 0.0_f32..0.5, min_keep in 1..9_u32) {
        let params = SamplingParams { xtc_threshold, min_keep, ..at(1.0) };
        assert_like_reference(&plain(&row), &params, true)?;
    }

    #[test]
    fn mask_and_bans_like_reference(
        row in rows(),
        mask in masks(),
        banned in proptest::collection::vec(0..40_u32, 0..4),
    ) {
        let input = SampleInput { row: &row, mask: mask.as_deref(), banned: &banned };
        assert_like_reference(&input, &at(1.0), false)?;
    }

    #[test]
    fn the_chain_like_reference(
        row in rows(),
        mask in masks(),
        banned in proptest::collection::vec(0..40_u32, 0..4),
        params in filters(),
        excludes in any::<bool>(),
    ) {
        let input = SampleInput { row: &row, mask: mask.as_deref(), banned: &banned };
        assert_like_reference(&input, &params, excludes)?;
    }

    #[test]
    fn only_kept_tokens_are_drawn_and_a_seed_repeats(
        row in rows(),
        mask in masks(),
        mut params in filters(),
        temperature in prop_oneof![Just(0.0_f32), 0.01_f32..3.0],
        seed in any::<u64>(),
    ) {
        params.temperature = temperature;
        params.repetition_penalty = 1.1;
        params.dynatemp_range = 0.3;
        let input = SampleInput { row: &row, mask: mask.as_deref(), banned: &[] };
        prop_assume!(!reference::kept(&input, &at(1.0), false, 0.0).is_empty());
        let allowed = reference::kept(&input, &at(1.0), false, 0.0);
        let mut first = sampler(params.clone(), row.len(), seed);
        let mut second = sampler(params.clone(), row.len(), seed);
        for _ in 0..20 {
            let token = first.sample(input).unwrap();
            prop_assert_eq!(second.sample(input), Ok(token));
            prop_assert!(allowed.contains(&token));
            first.accept(token);
            second.accept(token);
        }
    }
}
