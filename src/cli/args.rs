//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::bench::Workload;
use crate::config::{DeviceKind, LogFormat, Overrides};

/// Serves a language model over the OpenAI API.
#[derive(Clone, Debug, Parser)]
#[command(name = "pleach", version, arg_required_else_help = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 failure, 2 usage or settings, 70 the daemon gave up."
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Load a model and answer requests until SIGTERM or Ctrl-C.
    Serve(ServeArgs),
    /// Read a config file and the files it names, and say what is wrong or what it comes to.
    Check(CheckArgs),
    /// Tell what a GGUF model is: architecture, context, tokenizer, template, end tokens.
    Inspect(InspectArgs),
    /// Ask a grammar about a text, or what it is.
    #[command(subcommand)]
    Grammar(GrammarArgs),
    /// Ask what a chat template's model writes, what it is asked, and what it said.
    #[command(subcommand)]
    Chat(ChatArgs),
    /// Measure a running server, this one or another that speaks OpenAI's API: tokens a second,
    /// time to the first token, gaps between tokens, errors, and whether constrained answers hold.
    Bench(BenchArgs),
    /// Read an API key from standard input and print the hash for [[auth.keys]].
    HashKey,
}

/// `pleach grammar`.
#[derive(Clone, Debug, Subcommand)]
pub enum GrammarArgs {
    /// Say whether a text is a complete answer, and if not where it leaves the grammar and what
    /// was expected there. Exit code 0: it is, 1: it is not, 2: the grammar is wrong.
    Check(GrammarCheckArgs),
    /// Print a grammar's size and a few texts that it allows.
    Show(GrammarShowArgs),
}

/// Where a grammar comes from.
#[derive(Clone, Debug, clap::Args)]
#[group(required = false, multiple = true)]
pub struct GrammarSourceArgs {
    /// A file in llama.cpp's GBNF.
    #[arg(long, value_name = "FILE", group = "grammar")]
    #[arg(required_unless_present_any = ["regex", "json_object", "json_schema"])]
    pub gbnf: Option<PathBuf>,
    /// A regular expression that all of the text must match.
    #[arg(long, value_name = "RE", group = "grammar")]
    pub regex: Option<String>,
    /// Any JSON object.
    #[arg(long, group = "grammar")]
    pub json_object: bool,
    /// A file with a JSON Schema.
    #[arg(long, value_name = "FILE", group = "grammar")]
    pub json_schema: Option<PathBuf>,
    /// Properties of the schema may come in any order.
    #[arg(long, requires = "json_schema")]
    pub any_order: bool,
    /// No whitespace between JSON tokens of the schema.
    #[arg(long, requires = "json_schema")]
    pub compact: bool,
    /// Spelled as answers of the server are: on one line, integers without point and exponent.
    #[arg(long, requires = "json_schema")]
    pub served: bool,
    /// Leave out what of the schema cannot be followed exactly, and say so.
    #[arg(long, requires = "json_schema")]
    pub relaxed: bool,
    /// A tokenizer.json or GGUF file: also walk the text token by token.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
}

/// `pleach grammar check`.
#[derive(Clone, Debug, clap::Args)]
pub struct GrammarCheckArgs {
    /// The grammar.
    #[command(flatten)]
    pub source: GrammarSourceArgs,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// The text; without it standard input is read.
    pub text: Option<PathBuf>,
}

/// `pleach grammar show`.
#[derive(Clone, Debug, clap::Args)]
pub struct GrammarShowArgs {
    /// The grammar.
    #[command(flatten)]
    pub source: GrammarSourceArgs,
    /// Seed of the sample texts.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `pleach chat`.
#[derive(Clone, Debug, Subcommand)]
pub enum ChatArgs {
    /// Print the format that a model with each template writes: a line of JSON each, with file,
    /// kind, reasoning (off, tags or forced), prefill and extra_stops.
    Detect(ChatDetectArgs),
    /// Print the prompt that a request becomes.
    Render(ChatRenderArgs),
    /// Print what an answer says, as JSON: reasoning, content and tool_calls.
    Parse(ChatParseArgs),
}

/// `pleach chat detect`.
#[derive(Clone, Debug, clap::Args)]
pub struct ChatDetectArgs {
    /// A tokenizer.json or GGUF file: its tokens tell formats that the template does not.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// Chat templates: files of Jinja, or tokenizer_config.json.
    #[arg(required = true, value_name = "TEMPLATE")]
    pub templates: Vec<PathBuf>,
}

/// `pleach chat render`.
#[derive(Clone, Debug, clap::Args)]
pub struct ChatRenderArgs {
    /// The chat template: a file of Jinja, or a tokenizer_config.json.
    #[arg(long, value_name = "FILE")]
    pub template: PathBuf,
    /// A tokenizer.json or GGUF file: the names of its first and last tokens, for the template.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// The body of a chat request.
    #[arg(value_name = "REQUEST.json")]
    pub request: PathBuf,
}

/// `pleach chat parse`.
#[derive(Clone, Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["template", "format"]))]
pub struct ChatParseArgs {
    /// The model's chat template: a file of Jinja, or a tokenizer_config.json.
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// The name of a format.
    #[arg(long, value_name = "KIND")]
    pub format: Option<String>,
    /// A tokenizer.json or GGUF file: its tokens tell formats that the template does not.
    #[arg(long, value_name = "FILE", requires = "template")]
    pub tokenizer: Option<PathBuf>,
    /// The body of the chat request: its tools, and with a template its prompt's end.
    #[arg(long, value_name = "FILE")]
    pub request: Option<PathBuf>,
    /// A list of tools, as in a request.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub tools: Option<PathBuf>,
    /// The end of the prompt that the answer continues [default: what the template opens].
    #[arg(long, value_name = "TEXT")]
    pub prefill: Option<String>,
    /// More may follow: leave out what may still become something else.
    #[arg(long)]
    pub partial: bool,
    /// Read the answer in pieces of this many bytes, and print what a client puts together.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub chunk: Option<u32>,
    /// The answer; without it standard input is read.
    pub raw: Option<PathBuf>,
}

/// `pleach serve`. Each flag beats the file's value.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ServeArgs {
    /// Config file (TOML); config/example.toml shows every key.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// GGUF model to serve.
    #[arg(long, value_name = "FILE")]
    pub model: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8080].
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Threads of a device step; 0: the machine's cores but one [default: 0].
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Tokens that one session can hold [default: as the model was trained, at most 4096].
    #[arg(long, value_name = "TOKENS")]
    pub context: Option<u32>,
    /// Sessions that decode at once [default: 8].
    #[arg(long, value_name = "N")]
    pub max_sessions: Option<u32>,
    /// What the model runs on [default: ggml].
    #[arg(long, value_name = "KIND")]
    pub device: Option<DeviceKind>,
    /// How log lines look [default: text].
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
    /// error, warn, info, debug, trace, or a filter by module [default: info].
    #[arg(long, value_name = "FILTER")]
    pub log_level: Option<String>,
}

/// `pleach bench`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "The key of a server that asks for one is taken from OPENAI_API_KEY.\n\
    Exit codes: 0 every request was answered, 1 some were not, 2 usage.\n\n\
    Example: pleach bench --url http://127.0.0.1:8080 --clients 8 --workload mixed")]
pub struct BenchArgs {
    /// Where the server is; plain HTTP.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// Clients at once; each asks again when it has its answer.
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: u32,
    /// Requests in all.
    #[arg(long, value_name = "M", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub requests: u32,
    /// What is asked.
    #[arg(long, value_enum, default_value = "chat")]
    pub workload: Workload,
    /// The model's name [default: the first that the server names].
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Tokens of an answer at most [default: 256 for schema, 32 for long-prefix, else 128].
    #[arg(long, value_name = "TOKENS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// Words of long-prefix's system prompt; a word is about 1.2 tokens.
    #[arg(long, value_name = "WORDS", default_value_t = 820)]
    pub prefix_words: u32,
    /// Requests before the first that counts.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub warmup: u32,
    /// Fields for every request, in place of its own: '{"temperature": 0.7, "seed": 1}'.
    #[arg(long, value_name = "JSON")]
    pub extra: Option<String>,
    /// A request that takes longer has failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `pleach check`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckArgs {
    /// The config file.
    pub config: PathBuf,
}

/// `pleach inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct InspectArgs {
    /// The GGUF file.
    pub model: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl ServeArgs {
    /// The flags as what they override.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            model: self.model.clone(),
            listen: self.listen,
            threads: self.threads,
            context_tokens: self.context,
            max_sessions: self.max_sessions,
            device: self.device,
            log_format: self.log_format,
            log_level: self.log_level.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config::Config;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_flag_becomes_an_override() {
        let line = "pleach serve --config c.toml --model m.gguf --listen 0.0.0.0:1 --threads 2 \
                    --context 3 --max-sessions 4 --device simulated --log-format json \
                    --log-level warn";
        let args = Args::try_parse_from(line.split_whitespace()).unwrap();
        let Command::Serve(serve) = args.command else { panic!("not serve") };
        assert_eq!(serve.config, Some("c.toml".into()));
        let expected = Overrides {
            model: Some("m.gguf".into()),
            listen: Some("0.0.0.0:1".parse().unwrap()),
            threads: Some(2),
            context_tokens: Some(3),
            max_sessions: Some(4),
            device: Some(DeviceKind::Simulated),
            log_format: Some(LogFormat::Json),
            log_level: Some("warn".into()),
        };
        assert_eq!(serve.overrides(), expected);
    }

    #[test]
    fn nothing_is_overridden_unasked() {
        assert_eq!(ServeArgs::default().overrides(), Overrides::default());
    }

    #[test]
    fn the_help_tells_the_real_defaults() {
        let help =
            Args::command().find_subcommand_mut("serve").unwrap().render_long_help().to_string();
        let config = Config::default();
        for default in [
            config.server.listen.to_string(),
            config.device.threads.to_string(),
            config.model.context_tokens.to_string(),
            config.limits.max_sessions.to_string(),
            "ggml".to_owned(),
            "text".to_owned(),
            config.log.level,
        ] {
            assert!(help.contains(&format!("[default: {default}]")), "{default}: {help}");
        }
    }

    #[test]
    fn bad_values_are_usage_errors() {
        for line in ["serve --listen localhost:1", "serve --threads -1", "serve --device tpu", ""] {
            let words = std::iter::once("pleach").chain(line.split_whitespace());
            let error = Args::try_parse_from(words).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
