//! `device-bench`: the speed of the bare ggml device, without sessions, schedule or wire.
//!
//! For each number of sequences and context length: prefill, then steps in which every sequence
//! takes one token. Prints a table, or with `--json` one object a line.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use pleach::device::Device;
use pleach::device::ggml::shapes::{Shapes, median};
use pleach::device::ggml::{
    FlashAttention, GgmlDevice, GgmlSettings, RepeatableMode, WeightType, cpu_warnings, quantize,
};

/// Measures the bare device: tokens a second and the median step.
#[derive(Parser)]
struct Options {
    /// The model, a GGUF file.
    #[arg(long)]
    model: PathBuf,
    /// Sequences in a step.
    #[arg(long, value_delimiter = ',', default_value = "1,8,16")]
    sequences: Vec<u32>,
    /// Tokens that each sequence holds when its steps are timed.
    #[arg(long, value_delimiter = ',', default_value = "256")]
    context: Vec<u32>,
    /// Threads that compute; 0: the default.
    #[arg(long, default_value_t = 0)]
    threads: u32,
    /// Timed steps.
    #[arg(long, default_value_t = 30)]
    steps: u32,
    /// Spinning of compute threads between steps, in units of about 2 ms.
    #[arg(long, default_value_t = 0)]
    polling: u32,
    /// Slots from one sequence to the next: 2 leaves every other slot empty.
    #[arg(long, default_value_t = 1)]
    stride: u32,
    /// Threads that keep a core busy beside the device.
    #[arg(long, default_value_t = 0)]
    busy: u32,
    /// Pause between two steps, microseconds.
    #[arg(long, default_value_t = 0)]
    pause: u64,
    /// Test first whether rows are repeatable, and say so.
    #[arg(long)]
    repeatable: bool,
    /// Compute attention fused.
    #[arg(long)]
    flash_attention: bool,
    /// Also time the reading of so many tokens at once: alone, and beside the most sequences that
    /// decode.
    #[arg(long, value_delimiter = ',')]
    chunks: Vec<u32>,
    /// First write the model with its weights as Q4_0 to this file, and measure that.
    #[arg(long)]
    quantize: Option<PathBuf>,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// What was measured of one shape.
struct Figures {
    sequences: u32,
    context: u32,
    prefill_tokens_per_second: f64,
    step: Duration,
    /// CPU time of all threads, spinning included.
    step_cpu: Duration,
    tokens_per_second: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    if let Some(output) = options.quantize.take() {
        quantize(&options.model, &output, WeightType::Q4_0)?;
        options.model = output;
    }
    for warning in cpu_warnings() {
        eprintln!("{warning}");
    }
    let mut device = load(&options)?;
    eprintln!("{}", device.info().description);
    eprintln!("repeatable: {:?}", device.info().repeatable);
    let busy = Busy::start(options.busy);
    if !options.json {
        println!("sequences  context  prefill tok/s  step ms  cpu ms  tok/s");
    }
    for &context in &options.context {
        for &sequences in &options.sequences {
            let figures = measure(&mut device, &options, sequences, context)?;
            print(&options, &figures);
        }
    }
    if !options.chunks.is_empty() {
        chunks(&mut device, &options)?;
    }
    drop(busy);
    Ok(())
}

/// What the reading of a piece costs, alone and beside sequences that take a token each.
fn chunks(device: &mut GgmlDevice, options: &Options) -> Result<(), Box<dyn Error>> {
    let context = options.context.first().copied().unwrap_or(256);
    let sequences = options.sequences.iter().max().copied().unwrap_or(1);
    let slots: Vec<u32> = (0..sequences).map(|index| index * options.stride).collect();
    let reader = sequences * options.stride;
    if !options.json {
        println!("chunk  alone ms  beside {sequences} ms  without ms");
    }
    for &chunk in &options.chunks {
        let mut shapes = Shapes::new(device);
        for &slot in &slots {
            shapes.prefill(slot, context, 512)?;
        }
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..CHUNK_ROUNDS {
            let piece = (reader, chunk, 1);
            let decodes = slots.iter().map(|&slot| (slot, 1, 1));
            shapes.release(reader);
            times[0].push(shapes.step(&[piece])?);
            shapes.release(reader);
            times[1].push(shapes.step(&decodes.chain([piece]).collect::<Vec<_>>())?);
            times[2].push(shapes.decode(&slots)?);
        }
        let [alone, beside, without] = times.map(|times| median(&times).as_secs_f64() * 1000.0);
        if options.json {
            let object = serde_json::json!({"chunk_tokens": chunk, "sequences": sequences,
                "alone_ms": alone, "beside_ms": beside, "without_ms": without});
            println!("{object}");
        } else {
            println!("{chunk:5}  {alone:8.1}  {beside:11.1}  {without:10.1}");
        }
    }
    Ok(())
}

/// Times that each chunk is read.
const CHUNK_ROUNDS: u32 = 7;

fn load(options: &Options) -> Result<GgmlDevice, Box<dyn Error>> {
    let longest = options.context.iter().max().copied().unwrap_or(256);
    let most = options.sequences.iter().max().copied().unwrap_or(1);
    let settings = GgmlSettings {
        context_tokens: (longest + options.steps.max(2 * CHUNK_ROUNDS) + 8)
            .max(options.chunks.iter().max().copied().unwrap_or(0)),
        max_sequences: most * options.stride + u32::from(!options.chunks.is_empty()),
        threads: options.threads,
        polling: options.polling,
        repeatable: if options.repeatable { RepeatableMode::Auto } else { RepeatableMode::Off },
        flash_attention: if options.flash_attention {
            FlashAttention::On
        } else {
            FlashAttention::Off
        },
        ..GgmlSettings::new(&options.model)
    };
    let mut shown = 0;
    let device = GgmlDevice::load(&settings, &mut |fraction| {
        let percent = (fraction * 100.0) as u32;
        if percent >= shown + 10 {
            eprintln!("loading: {percent} %");
            shown = percent;
        }
        true
    })?;
    Ok(device)
}

fn measure(
    device: &mut GgmlDevice,
    options: &Options,
    sequences: u32,
    context: u32,
) -> Result<Figures, Box<dyn Error>> {
    let chunk = device.info().max_batch_tokens;
    let mut shapes = Shapes::new(device);
    let slots: Vec<u32> = (0..sequences).map(|index| index * options.stride).collect();
    let mut prefills = Vec::new();
    for &slot in &slots {
        prefills.push(shapes.prefill(slot, context, chunk)?);
    }
    // The first steps of a shape build its graph.
    for _ in 0..3 {
        shapes.decode(&slots)?;
    }
    let mut times = Vec::new();
    let cpu_before = cpu_time();
    for _ in 0..options.steps {
        times.push(shapes.decode(&slots)?);
        if options.pause > 0 {
            std::thread::sleep(Duration::from_micros(options.pause));
        }
    }
    let step = median(&times);
    let step_cpu = cpu_time().saturating_sub(cpu_before) / options.steps.max(1);
    Ok(Figures {
        sequences,
        context,
        prefill_tokens_per_second: f64::from(context) / median(&prefills).as_secs_f64(),
        step,
        step_cpu,
        tokens_per_second: f64::from(sequences) / step.as_secs_f64(),
    })
}

fn print(options: &Options, figures: &Figures) {
    let step_ms = figures.step.as_secs_f64() * 1000.0;
    let cpu_ms = figures.step_cpu.as_secs_f64() * 1000.0;
    if options.json {
        let object = serde_json::json!({
            "model": options.model.display().to_string(),
            "threads": options.threads,
            "sequences": figures.sequences,
            "context_tokens": figures.context,
            "prefill_tokens_per_second": figures.prefill_tokens_per_second,
            "step_ms_p50": step_ms,
            "step_cpu_ms": cpu_ms,
            "tokens_per_second": figures.tokens_per_second,
        });
        println!("{object}");
    } else {
        println!(
            "{:9}  {:7}  {:13.0}  {step_ms:7.1}  {cpu_ms:6.1}  {:5.0}",
            figures.sequences,
            figures.context,
            figures.prefill_tokens_per_second,
            figures.tokens_per_second
        );
    }
}

/// CPU time of this process's threads, where Linux tells; else zero.
fn cpu_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Threads that do nothing but take time; they report how much they got.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<u64>>,
}

impl Busy {
    fn start(count: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..count).map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut rounds = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..1000 {
                        rounds = std::hint::black_box(rounds + 1);
                    }
                }
                rounds
            })
        });
        Self { threads: threads.collect(), stop }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            if let Ok(rounds) = thread.join() {
                eprintln!("a busy thread did {} million rounds", rounds / 1_000_000);
            }
        }
    }
}
