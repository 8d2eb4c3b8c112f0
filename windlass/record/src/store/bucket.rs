//! A bucket that is only looked at.

use hyper::StatusCode;

use super::StoreSetupError;
use super::address::{Account, Place};
use super::client::{Client, StoreError};
use crate::check::CheckError;

/// A bucket, and who asks for it.
pub(crate) struct Bucket(Client);

impl Bucket {
    /// The bucket of a place, by the environment's `AWS_…` variables.
    pub(crate) fn of_environment(place: &Place) -> Result<Bucket, StoreSetupError> {
        let account = Account::of(place, |name| std::env::var(name).ok())?;
        Ok(Bucket(Client::new(account)?))
    }

    /// Whether the store has the bucket.
    pub(crate) async fn exists(&self) -> Result<(), CheckError> {
        match self.0.head().await {
            Ok(()) => Ok(()),
            Err(StoreError::Refused { status: StatusCode::FORBIDDEN, .. }) => {
                Err(CheckError::Forbidden)
            }
            Err(StoreError::Refused { status: StatusCode::NOT_FOUND, .. }) => {
                Err(CheckError::Store("the store has no such bucket".to_owned()))
            }
            Err(error) => Err(CheckError::Store(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
            Bucket(Client::new(account.unwrap()).unwrap()).exists().await
        };
        let here = || format!("http://{addr}");
        ask("s3://calls", SECRET, here()).await.unwrap();
        let error = ask("s3://others", SECRET, here()).await.unwrap_err().to_string();
        assert_eq!(error, "the store has no such bucket");
        let error = ask("s3://calls", "another", here()).await.unwrap_err();
        assert!(matches!(error, CheckError::Forbidden), "{error}");
        let away = ask("s3://calls", SECRET, "http://127.0.0.1:9".to_owned()).await.unwrap_err();
        assert!(away.to_string().contains("does not answer"), "{away}");
    }
}
