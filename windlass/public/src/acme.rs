//! A certificate by ACME (RFC 8555), kept and renewed in time.
//!
//! The server proves by TLS-ALPN-01 (RFC 8737) that the name leads to it. That uses the port of HTTPS, so no other port
//! is needed. The certificate is kept in a file, which the server reloads like files that others renew.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use instant_acme::{
    Account, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder, Order,
    OrderStatus, Problem, RetryPolicy,
};
use thiserror::Error as ThisError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::certificate::{Pair, Validity};
use crate::challenge;
use crate::https::Https;
use crate::state;

/// Directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Waits after failures, in minutes. Let's Encrypt allows five failed attempts an hour.
const RETRY_MINUTES: [u64; 5] = [1, 5, 15, 30, 60];
/// Maximum orders one after the other, where the ACME server took no nonce of the one before. It counts none of them as
/// a failed attempt. The client repeats each request three times by itself.
const MAX_ORDERS: u32 = 5;
/// Maximum time for the ACME server to check that the name leads here, and to issue the certificate.
const MAX_ORDER_TIME: Duration = Duration::from_secs(120);
/// Maximum time between two looks at the kept certificate: clocks may jump, and machines may sleep.
const POLL_INTERVAL: Duration = Duration::from_secs(3600);

/// Why there is no new certificate.
#[derive(Debug, ThisError)]
pub enum AcmeError {
    /// The system's certificates, with which the ACME server's is verified, cannot be read.
    #[error(
        "the system's certificates cannot be read ({0}): install them (Debian: ca-certificates)"
    )]
    Roots(#[source] io::Error),
    /// The ACME server cannot be reached, or does not answer as one.
    #[error(
        "{directory} does not answer ({reason}): see that this machine reaches it, or name another by --tls acme:URL"
    )]
    Unreachable {
        /// Directory of the ACME server.
        directory: String,
        /// Reason for which there is no answer.
        reason: String,
    },
    /// The ACME server refuses, or cannot see that the name leads here.
    #[error("{directory} refuses: {detail}. {mend}")]
    Refused {
        /// Directory of the ACME server.
        directory: String,
        /// Text of the ACME server.
        detail: String,
        /// Advice on what to do.
        mend: String,
    },
    /// The ACME server refused several of its own nonces: it has many machines, or was just restarted.
    #[error(
        "{directory} refuses the nonces that it gave (badNonce): it may have been restarted, or have many machines; wait for the next attempt"
    )]
    Nonce {
        /// Directory of the ACME server.
        directory: String,
    },
    /// The account or the certificate cannot be written to disk.
    #[error("cannot write {file}: {source}; check space and permissions of its folder")]
    Keep {
        /// File that cannot be written.
        file: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// No key or certificate request can be made for the name.
    #[error("cannot make a certificate's request for this name: {0}")]
    Request(#[from] rcgen::Error),
}

/// Keeps the certificate of one name, from one ACME server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acme {
    name: String,
    directory: String,
    folder: PathBuf,
}

impl Acme {
    /// Creates a keeper for `name`, with the ACME server of this `directory` (`https://…`). Files are kept below
    /// `folder`. Each ACME server has a folder of its own, because accounts and certificates of a test server are of no
    /// use with another.
    pub fn new(name: &str, directory: &str, folder: &Path) -> Acme {
        let host = directory.trim_start_matches("https://").split('/').next().unwrap_or_default();
        let folder = folder.join("acme").join(host.replace(':', "_"));
        Acme { name: name.to_owned(), directory: directory.to_owned(), folder }
    }

    /// Name that the certificate is for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Directory of the ACME server.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// File with key and certificate. It may not exist yet.
    pub fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.pem", self.name))
    }

    /// Validity of the kept certificate; `None` if there is no usable one.
    pub fn kept(&self) -> Option<Validity> {
        self.read().map(|(_, validity)| validity)
    }

    /// The kept certificate and its key, in one PEM text; `None` if there is no usable one.
    pub fn pem(&self) -> Option<Vec<u8>> {
        self.read().map(|(pem, _)| pem)
    }

    fn read(&self) -> Option<(Vec<u8>, Validity)> {
        let pem = fs::read(self.file()).ok()?;
        let validity = Validity::of(&pem)?;
        Some((pem, validity))
    }

    /// Gets the certificate and renews it for as long as the server runs. After a failure it tries again, each time
    /// later, or at SIGHUP. `answer` takes the certificate for handshakes of the ACME server; `None` when the challenge
    /// is over.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot listen for SIGHUP.
    pub async fn run(self, answer: impl Fn(Option<&Pair>) + Send + Sync) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let mut failures = 0;
        loop {
            let due = self.kept().map_or(Duration::ZERO, |kept| kept.renewed_in(SystemTime::now()));
            if !due.is_zero() {
                tokio::time::sleep(due.min(POLL_INTERVAL)).await;
                continue;
            }
            tracing::info!(
                name = self.name,
                directory = self.directory,
                "asking for a certificate"
            );
            let mut ordered = self.order(&answer).await;
            for _ in 1..MAX_ORDERS {
                let Err(AcmeError::Nonce { .. }) = ordered else { break };
                ordered = self.order(&answer).await;
            }
            answer(None);
            match ordered {
                Ok(()) => {
                    failures = 0;
                    tracing::info!(name = self.name, "certificate issued");
                }
                Err(error) => {
                    let minutes = RETRY_MINUTES[failures.min(RETRY_MINUTES.len() - 1)];
                    failures += 1;
                    let has = match self.kept() {
                        Some(_) => "the former one stays in use",
                        None => "browsers warn until there is one",
                    };
                    tracing::error!(
                        "no certificate for {}: {error} ({has}; asked again in {minutes} min, or at SIGHUP)",
                        self.name
                    );
                    sleep_or(&mut hangup, Duration::from_secs(60 * minutes)).await;
                }
            }
        }
    }

    async fn order(&self, answer: &(impl Fn(Option<&Pair>) + Sync)) -> Result<(), AcmeError> {
        let name = [Identifier::Dns(self.name.clone())];
        let order = match self.account().await?.new_order(&NewOrder::new(&name)).await {
            // It has forgotten the account, as those for tests do.
            Err(Error::Api(problem)) if is_type(&problem, "accountDoesNotExist") => {
                let file = self.account_file();
                fs::remove_file(&file).map_err(|source| AcmeError::Keep { file, source })?;
                self.account().await?.new_order(&NewOrder::new(&name)).await
            }
            order => order,
        };
        let mut order = order.map_err(|error| self.failed(error))?;
        self.prove(&mut order, answer).await?;
        let key = order.finalize().await.map_err(|error| self.failed(error))?;
        let policy = RetryPolicy::new().timeout(MAX_ORDER_TIME);
        let chain = order.poll_certificate(&policy).await.map_err(|error| self.failed(error))?;
        let text = key + &chain;
        if Validity::of(text.as_bytes()).is_none() {
            return Err(self.refused("it issued a certificate that is not of its request", None));
        }
        write(self.file(), text.as_bytes())
    }

    /// Answers the ACME server's challenges, and waits until it accepts them.
    async fn prove(
        &self,
        order: &mut Order,
        answer: &(impl Fn(Option<&Pair>) + Sync),
    ) -> Result<(), AcmeError> {
        let failed = |error| self.failed(error);
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(failed)?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let Some(mut asked) = authorization.challenge(ChallengeType::TlsAlpn01) else {
                return Err(self.refused("it does not offer the challenge tls-alpn-01", None));
            };
            let digest = asked.key_authorization().digest();
            answer(Some(&challenge::answer(&self.name, digest.as_ref())?));
            asked.set_ready().await.map_err(failed)?;
        }
        let refused = match order.poll_ready(&RetryPolicy::new().timeout(MAX_ORDER_TIME)).await {
            Ok(OrderStatus::Ready) => return Ok(()),
            // That says nothing of the order.
            Err(Error::Api(problem)) if is_type(&problem, "badNonce") => Some(problem),
            Ok(_) | Err(Error::Api(_)) => reason(order).await.map_err(failed)?,
            Err(error) => return Err(failed(error)),
        };
        Err(match refused {
            Some(problem) => failed(Error::Api(problem)),
            None => self.refused("the order is not valid any more", None),
        })
    }

    /// Loads the account of the last time, or creates one.
    async fn account(&self) -> Result<Account, AcmeError> {
        let https = Https::new().map_err(AcmeError::Roots)?;
        let builder = Account::builder_with_http(Box::new(https));
        let file = self.account_file();
        let kept = fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(kept) = kept {
            let account = builder.from_credentials(kept).await;
            return account.map_err(|error| self.failed(error));
        }
        // Whoever starts a server with ACME agrees to the terms of whom it names: docs/operating.md says so.
        let new =
            NewAccount { contact: &[], terms_of_service_agreed: true, only_return_existing: false };
        let made = builder.create(&new, self.directory.clone(), None).await;
        let (account, credentials) = made.map_err(|error| self.failed(error))?;
        let text = serde_json::to_vec(&credentials).map_err(|error| self.failed(error.into()))?;
        write(file, &text)?;
        Ok(account)
    }

    fn account_file(&self) -> PathBuf {
        self.folder.join("account.json")
    }

    fn failed(&self, error: Error) -> AcmeError {
        match error {
            Error::Api(problem) if is_type(&problem, "badNonce") => {
                AcmeError::Nonce { directory: self.directory.clone() }
            }
            Error::Api(problem) => {
                let detail = problem.detail.clone().unwrap_or_else(|| problem.to_string());
                self.refused(&detail, Some(&problem))
            }
            error => {
                // With all of its causes.
                let reason = format!("{:#}", anyhow::Error::new(error));
                AcmeError::Unreachable { directory: self.directory.clone(), reason }
            }
        }
    }

    fn refused(&self, detail: &str, problem: Option<&Problem>) -> AcmeError {
        let name = &self.name;
        let is = |kind| problem.is_some_and(|problem| is_type(problem, kind));
        let mend = if is("dns") {
            format!("Make a DNS record for {name}, A or AAAA, with this machine's address")
        } else if is("connection") {
            format!(
                "Its server must reach port 443 of {name}: see that the name leads to this machine, and open the port in firewall and NAT"
            )
        } else if is("tls") || is("unauthorized") || is("incorrectResponse") {
            format!(
                "Another program answers at port 443 of {name}: let the name lead here, or serve behind that program (--http 127.0.0.1:7880)"
            )
        } else if is("caa") {
            format!("The CAA record of {name} names other issuers: add this one")
        } else if is("rateLimited") {
            "Wait until its limit allows another attempt".to_owned()
        } else if is("rejectedIdentifier") {
            format!(
                "It gives no certificate for {name}: --public must be the server's own DNS name"
            )
        } else {
            format!(
                "See where the name leads by `windlass doctor --public {name}`; --tls CERT,KEY does without an ACME server"
            )
        };
        let detail = detail.trim_end_matches('.').to_owned();
        AcmeError::Refused { directory: self.directory.clone(), detail, mend }
    }
}

fn write(file: PathBuf, text: &[u8]) -> Result<(), AcmeError> {
    match state::write(&file, text, false) {
        Ok(_) => Ok(()),
        Err(source) => Err(AcmeError::Keep { file, source }),
    }
}

/// Reason for which the ACME server did not accept the challenge.
async fn reason(order: &mut Order) -> Result<Option<Problem>, Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        let state = authorization.refresh().await?;
        if let Some(problem) = state.challenges.iter().find_map(|asked| asked.error.clone()) {
            return Ok(Some(problem));
        }
    }
    Ok(order.state().error.clone())
}

fn is_type(problem: &Problem, kind: &str) -> bool {
    let named = problem.r#type.as_deref().and_then(|text| text.rsplit_once(':'));
    named.is_some_and(|(_, named)| named == kind)
}

async fn sleep_or(hangup: &mut Signal, time: Duration) {
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acme() -> Acme {
        Acme::new("calls.example", "https://127.0.0.1:14000/dir", Path::new("/state"))
    }

    #[test]
    fn each_acme_server_has_a_folder_of_its_own() {
        assert_eq!(acme().file(), Path::new("/state/acme/127.0.0.1_14000/calls.example.pem"));
        let usual = Acme::new("calls.example", LETS_ENCRYPT, Path::new("/state"));
        let file = "/state/acme/acme-v02.api.letsencrypt.org/calls.example.pem";
        assert_eq!(usual.file(), Path::new(file));
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        for (kind, part) in [
            ("dns", "Make a DNS record for calls.example"),
            ("connection", "must reach port 443"),
            ("unauthorized", "Another program answers"),
            ("caa", "CAA record"),
            ("rateLimited", "Wait"),
            ("malformed", "--tls CERT,KEY"),
        ] {
            let text = format!(
                r#"{{"type": "urn:ietf:params:acme:error:{kind}", "detail": "Its own words."}}"#
            );
            let problem: Problem = serde_json::from_str(&text).unwrap();
            let error = acme().failed(Error::Api(problem)).to_string();
            assert!(error.contains("refuses: Its own words. ") && error.contains(part), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let acme = Acme::new("calls.example", "https://127.0.0.1:9/dir", dir.path());
        let error = acme.order(&|_: Option<&Pair>| ()).await.unwrap_err().to_string();
        for part in ["https://127.0.0.1:9/dir does not answer", "refused", "--tls acme:URL"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
