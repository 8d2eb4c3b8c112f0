//! The connection to NATS: servers and credentials.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{ConnectOptions, ServerAddr};
use thiserror::Error;

use super::{Client, REQUEST_TIMEOUT};
use crate::token::ClusterToken;

/// Longest pause between two attempts to connect.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// Interval of pings of the connection.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// NATS servers and credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NatsConfig {
    /// `nats://host:4222` or `tls://…`, where needed with `user:password@` or `token@` before the host.
    pub servers: Vec<String>,
    /// Credentials file (`.creds`).
    pub credentials: Option<PathBuf>,
    /// CA certificate of the servers (PEM), if the system does not trust it.
    pub ca: Option<PathBuf>,
}

/// Why the configuration of NATS cannot be used.
#[derive(Debug, Error)]
pub enum NatsError {
    /// The credentials file cannot be used.
    #[error("cannot use the credentials in {}: {why}", file.display())]
    Credentials {
        /// The file.
        file: PathBuf,
        /// Why the file cannot be read.
        why: std::io::Error,
    },
    /// Addresses or certificates are invalid.
    #[error("cannot use the NATS servers: {0}")]
    Servers(#[from] async_nats::ConnectError),
}

/// Makes a client, which connects in the background, and again after failures. `token` seals entries, and opens those
/// of others.
///
/// # Errors
///
/// The configuration cannot be used. A server that does not answer is no error.
pub async fn connect(
    config: &NatsConfig,
    name: &str,
    token: &ClusterToken,
) -> Result<Client, NatsError> {
    let mut options = ConnectOptions::new()
        .name(name)
        .retry_on_initial_connect()
        .connection_timeout(REQUEST_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(|attempts| {
            let doubled = Duration::from_millis(50) * (1 << attempts.min(5));
            doubled.min(MAX_PAUSE)
        });
    if let Some(file) = &config.credentials {
        let failed = |why| NatsError::Credentials { file: file.clone(), why };
        let text = std::fs::read_to_string(file).map_err(failed)?;
        options = options.credentials(&text).map_err(failed)?;
    }
    if let Some(ca) = &config.ca {
        options = options.add_root_certificates(ca.clone());
    }
    // async-nats does not use credentials in addresses.
    options = match user_info(&config.servers) {
        Some((user, Some(password))) => options.user_and_password(user, password),
        Some((token, None)) => options.token(token),
        None => options,
    };
    Ok(Client::new(options.connect(&config.servers).await?, token))
}

/// User and password, or a token alone, of the first address that has them: all servers of a NATS cluster take the
/// same.
fn user_info(servers: &[String]) -> Option<(String, Option<String>)> {
    let addresses = servers.iter().filter_map(|server| server.parse::<ServerAddr>().ok());
    let mut found = addresses.filter_map(|address| {
        let user = address.username()?.to_owned();
        Some((user, address.password().map(str::to_owned)))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_may_stand_before_the_host() {
        let of = |servers: &[&str]| {
            user_info(&servers.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let known = |user: &str, password: Option<&str>| {
            Some((user.to_owned(), password.map(str::to_owned)))
        };
        assert_eq!(of(&["tls://a:4222", "nats://b:4222"]), None);
        assert_eq!(of(&["tls://windlass:x9@nats:4222"]), known("windlass", Some("x9")));
        assert_eq!(of(&["nats://a:4222", "nats://t0ken@b:4222"]), known("t0ken", None));
    }
}
