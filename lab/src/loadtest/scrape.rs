//! The server's own figures: `GET /metrics`, read as Prometheus text.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::signal::ServerUrl;
use crate::latencies::Latencies;

/// Maximum time for the server to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of an answer, in bytes.
const BYTES_MAX: u64 = 4 << 20;
/// The beginning of every metric's name, which figures leave out.
const PREFIX: &str = "windlass_";

/// Figures by name with labels, without `windlass_`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures(BTreeMap<String, f64>);

/// A histogram, or one of a histogram's series, told apart by a label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series<'a> {
    /// The histogram's name, without `windlass_`.
    pub name: &'a str,
    /// The label, as it is written; empty: there is none.
    pub label: &'a str,
}

impl Series<'_> {
    /// The name of the histogram's figure with this ending; `more` may begin a label that follows.
    pub(super) fn of(&self, ending: &str, more: &str) -> String {
        let Series { name, label } = self;
        match (*label, more) {
            ("", "") => format!("{name}{ending}"),
            (label, "") => format!("{name}{ending}{{{label}}}"),
            ("", more) => format!("{name}{ending}{{{more}"),
            (label, more) => format!("{name}{ending}{{{label},{more}"),
        }
    }
}

impl Figures {
    /// Reads the metrics of a server.
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
        let response = timeout(TIMEOUT, ask).await.map_err(|_| anyhow!("no answer"));
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

    /// Reads metrics from Prometheus text. Lines of other names are skipped.
    pub(super) fn parse(text: &str) -> Figures {
        let figure = |line: &str| {
            let (name, value) = line.strip_prefix(PREFIX)?.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Figures(text.lines().filter_map(figure).collect())
    }

    /// A figure by its name; zero where the server does not report it.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// A figure summed over all of its labels.
    pub(super) fn sum(&self, name: &str) -> f64 {
        let labelled = |of: &str| of.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'));
        self.0.iter().filter(|(of, _)| *of == name || labelled(of)).map(|(_, value)| value).sum()
    }

    /// The latencies that a histogram has counted since `before`, spread evenly over their buckets.
    pub(super) fn latencies_since(&self, before: &Figures, histogram: &Series<'_>) -> Latencies {
        let prefix = histogram.of("_bucket", "le=\"");
        let mut buckets: Vec<_> = self
            .0
            .iter()
            .filter_map(|(name, now)| {
                let most = name.strip_prefix(&prefix)?.strip_suffix("\"}")?.parse::<f64>().ok()?;
                Some((most, now - before.get(name)))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut all, mut below, mut from) = (Latencies::default(), 0.0, 0.0);
        for (most, count) in buckets {
            // Of the last bucket only the lower bound is known.
            let to = if most.is_finite() { most } else { from };
            all.record_between(1e3 * from, 1e3 * to, (count - below) as u64);
            (below, from) = (count, to);
        }
        all
    }

    /// The totals that have grown since `before`, and by how much.
    pub(super) fn grown_since(&self, before: &Figures) -> BTreeMap<String, f64> {
        let totals = self.0.iter().filter(|(name, _)| {
            let name = name.split('{').next().unwrap_or_default();
            ["_total", "_sum", "_count"].iter().any(|ending| name.ends_with(ending))
        });
        let grown = totals.map(|(name, &value)| (name.clone(), value - before.get(name)));
        grown.filter(|(_, by)| *by > 0.0).collect()
    }

    /// The figures whose names begin with `with`.
    pub(super) fn beginning(&self, with: &str) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().filter(move |(name, _)| name.starts_with(with)).map(|(n, &v)| (n.as_str(), v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE windlass_sfu_rtp_in_total counter\nwindlass_sfu_rtp_in_total 12\n\
        windlass_load_ratio{part=\"a\"} 0.25\nother 3\nwindlass_bad x\n";

    /// A histogram with so many of up to 10 ms, up to 20 ms, and more.
    fn histogram(counts: [u64; 3]) -> Figures {
        let [short, middle, long] = counts;
        Figures::parse(&format!(
            "windlass_wait_seconds_bucket{{stage=\"a\",le=\"0.01\"}} {short}\n\
             windlass_wait_seconds_bucket{{stage=\"a\",le=\"0.02\"}} {}\n\
             windlass_wait_seconds_bucket{{stage=\"a\",le=\"+Inf\"}} {}\n\
             windlass_wait_seconds_bucket{{stage=\"b\",le=\"0.01\"}} 1000\n",
            short + middle,
            short + middle + long
        ))
    }

    #[test]
    fn latencies_are_those_since_the_beginning_of_one_label() {
        let series = Series { name: "wait_seconds", label: "stage=\"a\"" };
        let latencies = histogram([5, 12, 3]).latencies_since(&histogram([5, 2, 2]), &series);
        assert_eq!(latencies.count(), 11);
        let median = latencies.percentile(50.0).unwrap();
        assert!((10.0..20.0).contains(&median), "{median}");
        assert_eq!(latencies.percentile(100.0), Some(20.0));
        let absent = Series { name: "other_seconds", label: "" };
        assert_eq!(histogram([1, 1, 1]).latencies_since(&Figures::default(), &absent).count(), 0);
    }

    #[test]
    fn totals_are_compared_and_figures_of_now_are_not() {
        let before = Figures::parse(TEXT);
        let after = Figures::parse(&TEXT.replace("total 12", "total 15").replace("0.25", "0.5"));
        let grown = after.grown_since(&before);
        assert_eq!(grown.into_iter().collect::<Vec<_>>(), [("sfu_rtp_in_total".to_owned(), 3.0)]);
        let now: Vec<_> = after.beginning("load_ratio{").map(|(_, v)| v).collect();
        assert_eq!(now, [0.5]);
    }

    #[test]
    fn what_is_not_there_is_zero() {
        assert!(Figures::parse("").get("sfu_rtp_in_total").abs() < f64::EPSILON);
        assert!((Figures::parse(TEXT).get("sfu_rtp_in_total") - 12.0).abs() < f64::EPSILON);
    }
}
