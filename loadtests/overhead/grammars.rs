//! What a grammar costs.

use std::error::Error;
use std::path::Path;

use pleach::bench::stats::median;
use serde_json::json;

use super::Options;
use super::support::client;

/// Any words and numbers, without an end: as many tokens as a free answer.
const OPEN: &str =
    r#"root ::= ([a-z]{1,12} | [0-9]{1,4} | [A-Z] [a-z]*) (" " | ", " | ". " | "\n") root | "end""#;

/// Much text without a choice, as in a form.
const FORM: &str = r#"root ::= line{12} "end"
line ::= "{\"kind\": \"measurement\", \"unit\": \"millimetre\", \"value\": " [0-9]{2} ", \"checked\": true}\n""#;

/// Tokens a second with a grammar over tokens a second without one, the same daemon in turn.
pub async fn measure(options: &Options, model: &Path) -> Result<(), Box<dyn Error>> {
    let (streams, most) = super::streams(options, &[8]);
    let daemon = super::daemon(options, model, most, "context_tokens = 1024").await?;
    let client = client::client(&daemon.url)?;
    for count in streams {
        let mut ratios = [Vec::new(), Vec::new()];
        for round in 0..=options.rounds {
            let free = client::burst(&client, super::requests(options, count)).await?;
            for (grammar, ratios) in [OPEN, FORM].into_iter().zip(&mut ratios) {
                let mut requests = super::requests(options, count);
                for request in &mut requests {
                    request.body["grammar"] = grammar.into();
                    request.body["ignore_eos"] = false.into();
                    request.body["allow_truncation"] = true.into();
                }
                let held = client::burst(&client, requests).await?;
                if round > 0 {
                    ratios.push(held.tokens_per_second() / free.tokens_per_second());
                }
            }
        }
        let [open, form] = ratios.map(|ratios| median(&ratios));
        if options.json {
            println!("{}", json!({"streams": count, "open_ratio": open, "form_ratio": form}));
        } else {
            println!(
                "{count:4} streams: with an open grammar {open:.3}, with one that forces text \
                 {form:.3} of the tokens a second without a grammar"
            );
        }
    }
    Ok(())
}
