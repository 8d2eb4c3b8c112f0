//! The server's own figures: `GET /metrics`, read as Prometheus text.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::signal::ServerUrl;

/// How long the server may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a server may answer with at most.
const BYTES_MAX: u64 = 4 << 20;
/// Before every name.
const PREFIX: &str = "windlass_";

/// Figures by name with labels, without `windlass_`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// Asks the server.
    pub(super) async fn of(server: &ServerUrl) -> Result<Figures> {
        let ask = async {
            let mut stream = TcpStream::connect(&server.authority).await?;
            let request = format!(
                "GET /metrics HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n\r\n",
                server.authority
            );
            stream.write_all(request.as_bytes()).await?;
            let mut response = String::new();
            stream.take(BYTES_MAX).read_to_string(&mut response).await?;
            Ok::<_, anyhow::Error>(response)
        };
        let response = timeout(PATIENCE, ask).await.map_err(|_| anyhow!("no answer"));
        let response = response.and_then(|r| r).with_context(|| {
            format!(
                "cannot read http://{}/metrics: is `windlass serve` running there?",
                server.authority
            )
        })?;
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
        let status = head.lines().next().unwrap_or_default();
        ensure!(status.contains(" 200 "), "http://{}/metrics answers {status}", server.authority);
        Ok(Figures::parse(body))
    }

    /// Reads a text; lines that are none of ours are passed over.
    pub(super) fn parse(text: &str) -> Figures {
        let figure = |line: &str| {
            let (name, value) = line.strip_prefix(PREFIX)?.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Figures(text.lines().filter_map(figure).collect())
    }

    /// A figure; zero where the server does not tell it.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// A figure, all of its labels together.
    pub(super) fn sum(&self, name: &str) -> f64 {
        let labelled = |of: &str| of.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'));
        self.0.iter().filter(|(of, _)| *of == name || labelled(of)).map(|(_, value)| value).sum()
    }

    /// Whether the server tells it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Totals that have grown since `before`, and by how much.
    pub(super) fn grown_since(&self, before: &Figures) -> BTreeMap<String, f64> {
        let totals = self.0.iter().filter(|(name, _)| {
            name.split('{').next().is_some_and(|name| name.ends_with("_total"))
        });
        let grown = totals.map(|(name, &value)| (name.clone(), value - before.get(name)));
        grown.filter(|(_, by)| *by > 0.0).collect()
    }

    /// Figures of now whose names begin so.
    pub(super) fn beginning(&self, with: &str) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().filter(move |(name, _)| name.starts_with(with)).map(|(n, &v)| (n.as_str(), v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE windlass_sfu_rtp_in_total counter\nwindlass_sfu_rtp_in_total 12\n\
        windlass_enhancer_latency_seconds{stage=\"infer\",quantile=\"0.5\"} 0.25\nother 3\nwindlass_bad x\n";

    #[test]
    fn totals_are_compared_and_figures_of_now_are_not() {
        let before = Figures::parse(TEXT);
        let after = Figures::parse(&TEXT.replace("total 12", "total 15").replace("0.25", "0.5"));
        let grown = after.grown_since(&before);
        assert_eq!(grown.into_iter().collect::<Vec<_>>(), [("sfu_rtp_in_total".to_owned(), 3.0)]);
        let now: Vec<_> = after.beginning("enhancer_latency_seconds{").map(|(_, v)| v).collect();
        assert_eq!(now, [0.5]);
    }

    #[test]
    fn what_is_not_there_is_zero() {
        assert!(Figures::parse("").get("sfu_rtp_in_total").abs() < f64::EPSILON);
        assert!((Figures::parse(TEXT).get("sfu_rtp_in_total") - 12.0).abs() < f64::EPSILON);
    }
}
