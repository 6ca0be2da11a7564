//! A page of metrics.

use std::error::Error;

/// What `/metrics` said at one moment.
pub struct Page(String);

impl Page {
    /// Reads the page of the daemon at `url`.
    pub async fn read(url: &str) -> Result<Self, Box<dyn Error>> {
        const BYTES_MAX: usize = 16 << 20;
        let client = awc::Client::builder().disable_timeout().finish();
        let sent = client.get(format!("{url}/metrics")).send().await;
        let mut answer = sent.map_err(|error| error.to_string())?;
        let body = answer.body().limit(BYTES_MAX).await?;
        Ok(Self(String::from_utf8(body.to_vec())?))
    }

    /// The sum of a metric over its labels.
    pub fn sum(&self, name: &str) -> f64 {
        let value = |line: &str| {
            let rest = line.strip_prefix(name)?;
            let is_whole = rest.starts_with([' ', '{']);
            is_whole.then(|| rest.rsplit(' ').next()?.parse::<f64>().ok()).flatten()
        };
        self.0.lines().filter_map(value).sum()
    }
}
