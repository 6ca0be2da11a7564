//! The device with a real model: `PLEACH_MODEL`, or the one that `deploy/setup.sh` puts in the
//! cache; without either these tests are skipped and say so.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{FlashAttention, GgmlDevice, GgmlSettings, RepeatableMode, WeightType, quantize};
use crate::TokenId;
use crate::device::{Device, DeviceError, Piece, Repeatable, Rows, Slot, StepBatch};

fn model() -> Option<PathBuf> {
    let path = std::env::var_os("PLEACH_MODEL").map(PathBuf::from).or_else(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        Some(cache?.join("pleach/models/smollm2-135m-q4_1.gguf"))
    });
    let path = path.filter(|path| path.exists());
    if path.is_none() {
        println!("skipped: no model");
    }
    path
}

/// Four sequences of 512 tokens, untested. One thread: several that wait for each other by
/// spinning take minutes on a machine that compiles at the same time.
fn settings(model: PathBuf) -> GgmlSettings {
    GgmlSettings {
        context_tokens: 512,
        max_sequences: 4,
        max_batch_tokens: 128,
        threads: 1,
        repeatable: RepeatableMode::Off,
        // Chosen by timing it would differ between two devices.
        flash_attention: FlashAttention::Off,
        ..GgmlSettings::new(model)
    }
}

fn open(settings: &GgmlSettings) -> GgmlDevice {
    GgmlDevice::load(settings, &mut |_| true).unwrap()
}

fn device() -> Option<GgmlDevice> {
    Some(open(&settings(model()?)))
}

fn piece(slot: u32, start: u32, tokens: &[TokenId], rows_wanted: u32) -> Piece {
    Piece { slot: Slot(slot), start, tokens: tokens.to_vec(), rows_wanted }
}

fn step(device: &mut GgmlDevice, pieces: Vec<Piece>) -> Result<Vec<Vec<f32>>, DeviceError> {
    let batch = StepBatch { pieces };
    let mut rows = Rows::new(device.info().vocab_size, batch.row_count());
    device.step(&batch, &mut rows)?;
    assert!(rows.is_whole(batch.row_count()));
    Ok((0..rows.len()).map(|row| rows.get(row).unwrap().to_vec()).collect())
}

fn argmax(row: &[f32]) -> TokenId {
    let best = (0..row.len()).reduce(|best, id| if row[id] > row[best] { id } else { best });
    best.unwrap() as TokenId
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|value| value.to_bits()).collect()
}

fn tokens(device: &GgmlDevice, text: &str) -> Vec<TokenId> {
    device.tokenize(text).unwrap().unwrap()
}

/// A prompt of `count` plain tokens.
fn prompt(count: u32) -> Vec<TokenId> {
    (0..count).map(|index| 1000 + index * 7 % 20_000).collect()
}

/// The likeliest `count` tokens after `text`.
fn continuation(device: &mut GgmlDevice, text: &str, count: usize) -> Vec<TokenId> {
    let prompt = tokens(device, text);
    let mut row = step(device, vec![piece(0, 0, &prompt, 1)]).unwrap();
    let mut answer = Vec::new();
    for at in (prompt.len() as u32..).take(count) {
        let token = argmax(&row[0]);
        answer.push(token);
        row = step(device, vec![piece(0, at, &[token], 1)]).unwrap();
    }
    device.release(Slot(0));
    answer
}

#[test]
fn the_library_is_built_without_amx() {
    let info = super::library::system_info();
    assert!(info.contains("CPU") && !info.contains("AMX"), "{info}");
}

#[test]
fn repeatable_rows_and_fused_attention_exclude_each_other_unless_somebody_asks() {
    let Some(model) = model() else { return };
    let auto = GgmlSettings {
        repeatable: RepeatableMode::Auto,
        flash_attention: FlashAttention::Auto,
        ..settings(model)
    };
    let device = open(&auto);
    let description = &device.info().description;
    let is_fused = !description.contains("flash attention off");
    match &device.info().repeatable {
        Repeatable::Proven => assert!(!is_fused, "{description}"),
        Repeatable::Untested => assert!(is_fused, "{description}"),
        Repeatable::Refuted(case) => panic!("{case}: {description}"),
    }
}

#[test]
fn it_continues_texts_as_the_model_does() {
    let Some(mut device) = device() else { return };
    let paris = tokens(&device, " Paris");
    let answer = continuation(&mut device, "The capital city of France is called", paris.len());
    assert_eq!(answer, paris);
    let numbers = tokens(&device, " 6, 7, 8, 9,");
    let answer = continuation(&mut device, "1, 2, 3, 4, 5,", numbers.len());
    assert_eq!(answer, numbers);
}

#[test]
fn rows_come_in_the_order_of_the_pieces() {
    let Some(mut device) = device() else { return };
    let (one, two) = (prompt(5), prompt(9));
    let a = step(&mut device, vec![piece(0, 0, &one, 2)]).unwrap();
    let b = step(&mut device, vec![piece(1, 0, &two, 1)]).unwrap();
    device.reset().unwrap();
    let both = vec![piece(3, 0, &two, 1), piece(2, 0, &[7], 0), piece(0, 0, &one, 2)];
    let rows = step(&mut device, both).unwrap();
    let expected = [&b[0], &a[0], &a[1]].map(|row| bits(row));
    assert_eq!(rows.iter().map(|row| bits(row)).collect::<Vec<_>>(), expected);
}

#[test]
fn an_invalid_batch_is_refused_and_changes_nothing() {
    let Some(mut device) = device() else { return };
    let vocab_size = device.info().vocab_size as TokenId;
    step(&mut device, vec![piece(1, 0, &prompt(10), 0)]).unwrap();
    let expected = step(&mut device, vec![piece(1, 10, &[5], 1)]).unwrap();
    device.trim(Slot(1), 10).unwrap();
    let bad: Vec<Vec<Piece>> = vec![
        vec![],
        vec![piece(1, 10, &[], 0)],
        vec![piece(1, 9, &[5], 1)],
        vec![piece(1, 11, &[5], 1)],
        vec![piece(1, 10, &[5], 2)],
        vec![piece(1, 10, &[vocab_size], 1)],
        vec![piece(1, 10, &[TokenId::MAX], 1)],
        vec![piece(4, 0, &[5], 1)],
        vec![piece(u32::MAX, 0, &[5], 1)],
        vec![piece(1, 10, &[5], 1), piece(1, 11, &[5], 1)],
        vec![piece(0, 0, &prompt(129), 1)],
        vec![piece(1, u32::MAX, &[5], 1)],
    ];
    for pieces in bad {
        let shown = format!("{pieces:?}");
        let error = step(&mut device, pieces).expect_err(&shown);
        assert!(matches!(error, DeviceError::InvalidBatch(_)), "{shown}: {error}");
    }
    let rows = step(&mut device, vec![piece(1, 10, &[5], 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));
}

#[test]
fn a_sequence_fills_its_context_and_no_more() {
    let Some(mut device) = device() else { return };
    for slot in 0..4 {
        for part in 0..4 {
            step(&mut device, vec![piece(slot, part * 128, &prompt(128), 0)]).unwrap();
        }
    }
    let error = step(&mut device, vec![piece(2, 512, &[5], 1)]).unwrap_err();
    assert!(matches!(error, DeviceError::InvalidBatch(_)), "{error}");
    device.trim(Slot(2), 511).unwrap();
    step(&mut device, vec![piece(2, 511, &[5], 1)]).unwrap();
}

#[test]
fn what_is_trimmed_and_grown_again_is_the_same() {
    let Some(mut device) = device() else { return };
    let text = prompt(40);
    let expected = step(&mut device, vec![piece(2, 0, &text, 1)]).unwrap();
    step(&mut device, vec![piece(2, 40, &[9, 9, 9], 1)]).unwrap();
    device.trim(Slot(2), 25).unwrap();
    let rows = step(&mut device, vec![piece(2, 25, &text[25..], 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));
    device.trim(Slot(2), 40).unwrap();
    device.trim(Slot(2), 0).unwrap();
    let rows = step(&mut device, vec![piece(2, 0, &text, 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));
    for (slot, length) in [(2, 41), (0, 1), (4, 0)] {
        let error = device.trim(Slot(slot), length).unwrap_err();
        assert!(matches!(error, DeviceError::Sequence { .. }), "{error}");
    }
}

#[test]
fn a_copy_is_an_equal_of_its_own() {
    let Some(mut device) = device() else { return };
    step(&mut device, vec![piece(0, 0, &prompt(30), 0)]).unwrap();
    device.copy(Slot(0), Slot(3)).unwrap();
    // What happens to the original afterwards does not touch the copy.
    let expected = step(&mut device, vec![piece(0, 30, &[5], 1)]).unwrap();
    device.release(Slot(0));
    step(&mut device, vec![piece(0, 0, &prompt(60)[30..], 0)]).unwrap();
    let rows = step(&mut device, vec![piece(3, 30, &[5], 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));

    let error = device.copy(Slot(0), Slot(3)).unwrap_err();
    assert!(matches!(error, DeviceError::Sequence { slot: Slot(3), .. }), "{error}");
    assert!(device.copy(Slot(0), Slot(4)).is_err());
    assert!(device.copy(Slot(4), Slot(1)).is_err());
    device.copy(Slot(1), Slot(2)).unwrap();
    step(&mut device, vec![piece(2, 0, &[5], 1)]).unwrap();
}

#[test]
fn a_saved_state_goes_on_bit_for_bit_in_another_device() {
    let Some(model) = model() else { return };
    let mut first = open(&settings(model.clone()));
    step(&mut first, vec![piece(0, 0, &prompt(50), 0)]).unwrap();
    let saved = first.save_state(Slot(0)).unwrap();
    let empty = first.save_state(Slot(1)).unwrap();
    let expected = step(&mut first, vec![piece(0, 50, &[5, 6], 2)]).unwrap();
    // Two devices in one process, the second with a life of its own.
    let mut second = open(&settings(model.clone()));
    step(&mut second, vec![piece(3, 0, &prompt(20), 0)]).unwrap();
    second.load_state(Slot(1), &saved).unwrap();
    let rows = step(&mut second, vec![piece(1, 50, &[5, 6], 2), piece(3, 20, &[1], 0)]).unwrap();
    assert_eq!(
        rows.iter().map(|row| bits(row)).collect::<Vec<_>>(),
        [bits(&expected[0]), bits(&expected[1])]
    );
    second.load_state(Slot(0), &empty).unwrap();
    step(&mut second, vec![piece(0, 0, &[5], 1)]).unwrap();
    // A slot in use, another shape.
    assert!(second.load_state(Slot(3), &saved).is_err());
    let mut other = open(&GgmlSettings { max_sequences: 2, ..settings(model) });
    assert!(other.load_state(Slot(0), &saved).is_err());
}

#[test]
fn a_damaged_state_is_refused_and_harms_nothing() {
    let Some(mut device) = device() else { return };
    step(&mut device, vec![piece(0, 0, &prompt(20), 0)]).unwrap();
    let saved = device.save_state(Slot(0)).unwrap();
    let expected = step(&mut device, vec![piece(0, 20, &[5], 1)]).unwrap();
    let mut flipped = saved.clone();
    flipped[saved.len() / 2] ^= 1;
    let garbage: Vec<u8> = (0..100_000u32).map(|index| ((index * 31) >> 3) as u8).collect();
    for bad in [&[], &garbage[..], &saved[..saved.len() - 1], &saved[..40], &flipped[..]] {
        let error = device.load_state(Slot(1), bad).unwrap_err();
        assert!(matches!(error, DeviceError::Sequence { slot: Slot(1), .. }), "{error}");
    }
    device.load_state(Slot(1), &saved).unwrap();
    let rows = step(&mut device, vec![piece(1, 20, &[5], 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));
}

#[test]
fn an_abort_ends_a_step_and_its_sequences_must_be_released() {
    let Some(model) = model() else { return };
    let settings = GgmlSettings { context_tokens: 2048, max_batch_tokens: 2048, ..settings(model) };
    let mut device = open(&settings);
    let expected = step(&mut device, vec![piece(1, 0, &prompt(8), 1)]).unwrap();
    let flag = device.abort_flag();
    let watcher = std::thread::spawn(move || {
        // The step clears the flag when it starts: set it until it is seen to stay.
        while std::sync::Arc::strong_count(&flag) > 1 {
            flag.store(true, Ordering::Relaxed);
            std::thread::yield_now();
        }
    });
    let error = step(&mut device, vec![piece(0, 0, &prompt(2048), 1)]).unwrap_err();
    assert_eq!(error, DeviceError::Aborted);
    let error = step(&mut device, vec![piece(0, 0, &[5], 1)]).unwrap_err();
    assert!(matches!(error, DeviceError::InvalidBatch(_)), "{error}");
    assert!(device.save_state(Slot(0)).is_err());
    assert!(device.trim(Slot(0), 0).is_err());
    drop(device);
    watcher.join().unwrap();

    let mut device = open(&settings);
    step(&mut device, vec![piece(1, 0, &prompt(8), 1)]).unwrap();
    device.release(Slot(1));
    let rows = step(&mut device, vec![piece(1, 0, &prompt(8), 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));
}

#[test]
fn a_reset_forgets_everything() {
    let Some(mut device) = device() else { return };
    let expected = step(&mut device, vec![piece(0, 0, &prompt(8), 1)]).unwrap();
    device.reset().unwrap();
    assert!(step(&mut device, vec![piece(0, 8, &[5], 1)]).is_err());
    let rows = step(&mut device, vec![piece(0, 0, &prompt(8), 1)]).unwrap();
    assert_eq!(bits(&rows[0]), bits(&expected[0]));
    device.release(Slot(0));
    device.release(Slot(0));
    device.release(Slot(99));
}

#[test]
fn bad_files_and_settings_are_refused_with_advice() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.gguf");
    std::fs::write(&text, "The quick brown fox jumps over the lazy dog.\n".repeat(100)).unwrap();
    let bytes = std::fs::read(&model).unwrap();
    let cut = folder.path().join("cut.gguf");
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let stub = folder.path().join("stub.gguf");
    std::fs::write(&stub, &bytes[..100]).unwrap();
    let good = settings(model);
    let cases = [
        (GgmlSettings { model: folder.path().join("none.gguf"), ..good.clone() }, "check the path"),
        (GgmlSettings { model: folder.path().to_owned(), ..good.clone() }, "directory"),
        (GgmlSettings { model: text, ..good.clone() }, "not a GGUF"),
        (GgmlSettings { model: cut, ..good.clone() }, "truncated"),
        (GgmlSettings { model: stub, ..good.clone() }, "truncated"),
        (GgmlSettings { context_tokens: 1 << 20, ..good.clone() }, "trained with"),
        (GgmlSettings { max_sequences: 0, ..good.clone() }, "max_sequences"),
        (GgmlSettings { max_sequences: 257, ..good.clone() }, "max_sequences"),
        (GgmlSettings { max_batch_tokens: 0, ..good.clone() }, "max_batch_tokens"),
        (GgmlSettings { threads: 100_000, ..good }, "threads"),
    ];
    for (settings, advice) in cases {
        let error = GgmlDevice::load(&settings, &mut |_| true).err().expect(advice).to_string();
        assert!(error.contains(advice), "{error:?} lacks {advice:?}");
    }
}

#[test]
fn a_kv_memory_that_the_machine_lacks_is_refused_with_its_size() {
    let Some(model) = model() else { return };
    let settings = GgmlSettings { context_tokens: 8192, max_sequences: 256, ..settings(model) };
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    // 256 × 8192 tokens of SmolLM2-135M take 46,080 MiB.
    if total.is_none_or(|kib| kib / 1024 > 46_080) {
        println!("skipped: this machine has the memory, or does not tell");
        return;
    }
    let error = GgmlDevice::load(&settings, &mut |_| true).err().unwrap().to_string();
    assert!(error.contains("46080 MiB"), "{error}");
}

#[test]
fn a_load_can_be_cancelled_and_a_panic_of_the_callback_comes_through() {
    let Some(model) = model() else { return };
    let calls = AtomicUsize::new(0);
    let mut cancel = |_: f32| calls.fetch_add(1, Ordering::Relaxed) < 3;
    let error = GgmlDevice::load(&settings(model.clone()), &mut cancel).err().unwrap();
    assert!(error.to_string().contains("cancelled"), "{error}");
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    let caught = std::panic::catch_unwind(|| {
        GgmlDevice::load(&settings(model), &mut |_| panic!("of the callback")).map(|_| ())
    });
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"of the callback"));
}

#[test]
fn the_small_model_is_repeatable_and_the_test_leaves_it_empty() {
    let Some(model) = model() else { return };
    let settings = GgmlSettings {
        context_tokens: 1024,
        threads: 1,
        repeatable: RepeatableMode::On,
        ..GgmlSettings::new(model)
    };
    let mut last = 0.0;
    let start = std::time::Instant::now();
    let mut device = GgmlDevice::load(&settings, &mut |fraction| {
        assert!((last..=1.0).contains(&fraction), "{fraction} after {last}");
        last = fraction;
        true
    })
    .unwrap();
    println!("loaded and tested in {:?}", start.elapsed());
    assert_eq!(last, 1.0);
    assert_eq!(device.info().repeatable, Repeatable::Proven);
    let first = (0..8).map(|slot| piece(slot, 0, &[slot + 1000], 1)).collect();
    step(&mut device, first).unwrap();
}

#[test]
fn another_weight_type_is_written_and_loads() {
    let Some(model) = model() else { return };
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("q4_0.gguf");
    quantize(&model, &output, WeightType::Q4_0).unwrap();
    let mut device = open(&settings(output.clone()));
    assert!(device.info().description.contains("Q4_0"), "{}", device.info().description);
    let paris = tokens(&device, " Paris");
    let answer = continuation(&mut device, "The capital city of France is called", paris.len());
    assert_eq!(answer, paris);
    let text = folder.path().join("text");
    std::fs::write(&text, "no model").unwrap();
    assert!(quantize(&text, &output, WeightType::Q4_0).is_err());
    assert!(output.exists());
}
