//! A real S3 server for tests: `s3s-fs`, whose objects are files. As a program:
//!
//! ```sh
//! cargo run -p windlass-record --example real_store -- 127.0.0.1:9000 FOLDER
//! ```
//!
//! `FOLDER` gets a folder for the bucket `calls`. The key is `windlass`, the secret `not much of a secret`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::StatusCode;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::S3Error;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use tokio::net::TcpListener;

/// The key that the server knows.
pub(crate) const KEY: &str = "windlass";
/// The secret of that key.
pub(crate) const SECRET: &str = "not much of a secret";
/// The bucket that it has.
pub(crate) const BUCKET: &str = "calls";

/// Serves a folder at an address for as long as the runtime runs. `requests` counts what clients ask.
pub(crate) async fn serve(
    folder: &Path,
    addr: SocketAddr,
    requests: Arc<AtomicUsize>,
) -> std::io::Result<SocketAddr> {
    std::fs::create_dir_all(folder.join(BUCKET))?;
    let files =
        s3s_fs::FileSystem::new(folder).map_err(|e| std::io::Error::other(format!("{e:?}")))?;
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(KEY, SECRET));
    let service = service.build().into_shared();
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (service, requests) = (service.clone(), requests.clone());
            tokio::spawn(async move {
                let counted = service_fn(move |request| {
                    requests.fetch_add(1, Ordering::Relaxed);
                    let of_upload = request.uri().query().is_some_and(|q| q.contains("uploadId"));
                    let answer = service.call(request);
                    async move {
                        let mut answer = answer.await?;
                        // Amazon's answer to an upload that it does not know.
                        if of_upload && answer.status() == StatusCode::FORBIDDEN {
                            *answer.status_mut() = StatusCode::NOT_FOUND;
                        }
                        Ok::<_, S3Error>(answer)
                    }
                });
                let connection = Builder::new(TokioExecutor::new());
                let _ = connection.serve_connection(TokioIo::new(socket), counted).await;
            });
        }
    });
    Ok(addr)
}

#[tokio::main(flavor = "current_thread")]
#[allow(dead_code)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(addr), Some(folder)) = (args.next(), args.next()) else {
        return Err("usage: real_store ADDRESS FOLDER".into());
    };
    let addr = serve(Path::new(&folder), addr.parse()?, Arc::default()).await?;
    println!("serving {folder} at http://{addr}");
    std::future::pending().await
}
