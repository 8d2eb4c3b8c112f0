//! A bucket that is only looked at.

use hyper::StatusCode;

use super::client::{Client, StoreError};

/// Why a bucket cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// There is none of this name.
    #[error("the store has no such bucket")]
    Absent,
    /// The credentials may not look at it. They may be allowed to write all the same.
    #[error("the store does not let these credentials look at the bucket")]
    Forbidden,
    /// The store does not answer, or as no store does.
    #[error("{0}")]
    Store(String),
}

/// A bucket, and who asks for it.
pub(crate) struct Bucket(Client);

impl Bucket {
    /// The bucket of a client.
    pub(super) fn new(client: Client) -> Bucket {
        Bucket(client)
    }

    /// Whether the store has the bucket.
    pub(crate) async fn exists(&self) -> Result<(), BucketError> {
        self.0.head().await.map_err(|error| match error {
            StoreError::Refused { status: StatusCode::FORBIDDEN, .. } => BucketError::Forbidden,
            StoreError::Refused { status: StatusCode::NOT_FOUND, .. } => BucketError::Absent,
            error => BucketError::Store(error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::address::Account;
    use super::super::real_store::{KEY, SECRET, serve};
    use super::*;

    #[tokio::test]
    async fn a_bucket_is_there_or_not_or_may_not_be_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let addr = serve(folder.path(), ([127, 0, 0, 1], 0).into(), Arc::default()).await.unwrap();
        let ask = async |place: &str, secret: &str, url: String| {
            let account = Account::of(&place.parse().unwrap(), |name| match name {
                "AWS_ENDPOINT_URL" => Some(url.clone()),
                "AWS_ACCESS_KEY_ID" => Some(KEY.to_owned()),
                "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
                _ => None,
            });
            Bucket::new(Client::new(account.unwrap()).unwrap()).exists().await
        };
        let here = || format!("http://{addr}");
        ask("s3://calls", SECRET, here()).await.unwrap();
        let error = ask("s3://others", SECRET, here()).await.unwrap_err();
        assert!(matches!(error, BucketError::Absent), "{error}");
        let error = ask("s3://calls", "another", here()).await.unwrap_err();
        assert!(matches!(error, BucketError::Forbidden), "{error}");
        let away = ask("s3://calls", SECRET, "http://127.0.0.1:9".to_owned()).await.unwrap_err();
        assert!(away.to_string().contains("does not answer"), "{away}");
    }
}
