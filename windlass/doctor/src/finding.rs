//! Findings of checks.

use std::fmt;

use serde::Serialize;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The part works as it should.
    Ok,
    /// The server serves, but not everybody, or not as well as it could.
    Warning,
    /// The server does not start, or does not do what it is configured for.
    Fault,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Fault => "fault",
        })
    }
}

/// A finding of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the checked part, such as `ports`. Names are stable.
    pub check: &'static str,
    /// Severity of the finding.
    pub level: Level,
    /// Description of what was found.
    pub found: String,
    /// Option or command that repairs it; `None` if nothing has to be repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    /// Creates the finding that a part works.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Finding {
        Finding { check, level: Level::Ok, found: found.into(), mend: None }
    }

    /// Creates the finding that a part could be better.
    pub fn warning(
        check: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { check, level: Level::Warning, found: found.into(), mend: Some(mend.into()) }
    }

    /// Creates the finding that a part does not work.
    pub fn fault(
        check: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        Finding { check, level: Level::Fault, found: found.into(), mend: Some(mend.into()) }
    }
}

/// All findings of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Worst severity of all findings.
    level: Level,
    /// Findings in the order of the checks.
    findings: Vec<Finding>,
}

impl Report {
    /// Creates a report of the findings.
    pub fn new(findings: Vec<Finding>) -> Report {
        let level = findings.iter().map(|f| f.level).max().unwrap_or(Level::Ok);
        Report { level, findings }
    }

    /// Whether a finding is a fault: the server would not do what it is configured for.
    pub fn has_faults(&self) -> bool {
        self.level == Level::Fault
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { check, level, found, mend } in &self.findings {
            writeln!(f, "{level:<8} {check:<12} {found}")?;
            if let Some(mend) = mend {
                writeln!(f, "{:<21} mend: {mend}", "")?;
            }
        }
        let count = |level| self.findings.iter().filter(|finding| finding.level == level).count();
        let plural = |n: usize, what| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
        write!(f, "{}, {}.", plural(faults, "fault"), plural(warnings, "warning"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_as_bad_as_its_worst_finding() {
        let all = vec![
            Finding::ok("ports", "free"),
            Finding::fault("tls", "expired", "a new certificate"),
            Finding::warning("clock", "alone", "start chronyd"),
        ];
        let report = Report::new(all);
        assert!(report.has_faults());
        let text = report.to_string();
        assert!(text.contains("mend: a new certificate\n"), "{text}");
        assert!(text.ends_with("1 fault, 1 warning."), "{text}");
        assert!(!Report::new(Vec::new()).has_faults());
    }
}
