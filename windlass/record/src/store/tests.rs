use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use std::sync::atomic::{AtomicUsize, Ordering};

use super::real_store::{BUCKET, KEY, SECRET, serve};
use super::*;
use crate::manifest::{EndReason, MediaFile};
use crate::webm::{Shape, Slot, VideoCodec, Webm};

const PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A real store, whose objects are files.
struct RealStore {
    folder: tempfile::TempDir,
    addr: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl RealStore {
    async fn start(addr: SocketAddr) -> RealStore {
        let (folder, requests) = (tempfile::tempdir().unwrap(), Arc::default());
        let addr = serve(folder.path(), addr, Arc::clone(&requests)).await.unwrap();
        RealStore { folder, addr, requests }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// The file of an object.
    fn object(&self, name: &str) -> PathBuf {
        self.folder.path().join(BUCKET).join(name)
    }
}

fn store(root: &Path, addr: SocketAddr, secret: &str) -> Store {
    let place: Place = format!("s3://{BUCKET}/ours").parse().unwrap();
    let url = format!("http://{addr}");
    let account = Account::of(&place, |name| match name {
        "AWS_ENDPOINT_URL" => Some(url.clone()),
        "AWS_ACCESS_KEY_ID" => Some(KEY.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        _ => None,
    });
    let (client, queue) = (Client::new(account.unwrap()).unwrap(), Arc::default());
    Store { place, client, root: root.to_owned(), queue }
}

/// A recording on the disk, with a file of each size.
fn recording(root: &Path, name: &str, ended: bool, sizes: &[usize]) -> Vec<Vec<u8>> {
    let folder = root.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let data: Vec<Vec<u8>> = sizes
        .iter()
        .enumerate()
        .map(|(n, &bytes)| (0..bytes).map(|at| (at / 999 + n) as u8).collect())
        .collect();
    let file = |n: usize| MediaFile {
        file: format!("p{n}-1.webm"),
        participant: format!("p{n}"),
        identity: None,
        name: String::new(),
        offset: 0.0,
        duration: 1.0,
        bytes: data[n].len() as u64,
        tracks: Vec::new(),
        complete: true,
        enhanced: None,
    };
    let manifest = Manifest {
        recording: name.to_owned(),
        part: "a1".to_owned(),
        room: "tea".to_owned(),
        participant: None,
        enhanced: false,
        started: 1.0,
        ended: ended.then_some(2.0),
        reason: ended.then_some(EndReason::Stopped),
        error: None,
        files: (0..sizes.len()).map(file).collect(),
    };
    for (n, bytes) in data.iter().enumerate() {
        std::fs::write(folder.join(&manifest.files[n].file), bytes).unwrap();
    }
    manifest.save(&folder).unwrap();
    data
}

/// Places of the recordings that were stored by one look.
async fn places(store: &Store) -> Result<Vec<String>, String> {
    let told = Mutex::new(Vec::new());
    let tells = |event| {
        let Event::Stored { place, .. } = event else { panic!("{event:?}") };
        told.lock().unwrap().push(place);
    };
    store.send_ended(&tells).await.map_err(|error| error.to_string())?;
    Ok(told.into_inner().unwrap())
}

#[tokio::test]
async fn an_ended_recording_goes_to_the_store_whole_and_leaves_the_disk() {
    let (server, root) = (RealStore::start(PORT).await, tempfile::tempdir().unwrap());
    let data = recording(root.path(), "rec_1", true, &[1000, 0, 3]);
    recording(root.path(), "rec_2", false, &[10]);
    let store = store(root.path(), server.addr, SECRET);
    assert_eq!(places(&store).await, Ok(vec!["s3://calls/ours/rec_1".to_owned()]));
    for (n, bytes) in data.iter().enumerate() {
        assert_eq!(
            std::fs::read(server.object(&format!("ours/rec_1/p{n}-1.webm"))).unwrap(),
            *bytes
        );
    }
    let manifest = std::fs::read(server.object("ours/rec_1/recording-a1.json")).unwrap();
    let manifest: Manifest = serde_json::from_slice(&manifest).unwrap();
    assert_eq!((manifest.ended, manifest.files.len()), (Some(2.0), 3));
    assert!(!root.path().join("rec_1").exists());
    assert!(root.path().join("rec_2/p0-1.webm").exists(), "a running one stays");
    assert!(!server.object("ours/rec_2").exists());
    assert_eq!(places(&store).await, Ok(Vec::new()), "nothing is told twice");
}

#[tokio::test]
async fn a_large_file_goes_on_with_the_part_at_which_the_server_was_killed() {
    let (server, root) = (RealStore::start(PORT).await, tempfile::tempdir().unwrap());
    let data = recording(root.path(), "rec_1", true, &[40 << 20]);
    let before = store(root.path(), server.addr, SECRET);
    let (file, object) = ("p0-1.webm".to_owned(), "ours/rec_1/p0-1.webm");
    let id = before.client.begin(object).await.unwrap();
    let first = Bytes::copy_from_slice(&data[0][..16 << 20]);
    let etags = vec![before.client.part(object, &id, 1, first).await.unwrap()];
    let progress = Progress { stored: Vec::new(), upload: Some(Upload { file, id, etags }) };
    progress.save(&root.path().join("rec_1")).unwrap();

    let requests = server.requests();
    let after = store(root.path(), server.addr, SECRET);
    assert_eq!(places(&after).await.map(|all| all.len()), Ok(1));
    assert_eq!(server.requests() - requests, 4, "two parts, the end, the manifest");
    assert!(std::fs::read(server.object(object)).unwrap() == data[0]);
}

#[tokio::test]
async fn an_upload_that_the_store_has_forgotten_begins_anew() {
    let (server, root) = (RealStore::start(PORT).await, tempfile::tempdir().unwrap());
    let data = recording(root.path(), "rec_1", true, &[17 << 20]);
    let (file, id) = ("p0-1.webm".to_owned(), "00000000-0000-0000-0000-000000000000".to_owned());
    let etags = vec!["\"gone\"".to_owned()];
    let progress = Progress { stored: Vec::new(), upload: Some(Upload { file, id, etags }) };
    progress.save(&root.path().join("rec_1")).unwrap();
    let store = store(root.path(), server.addr, SECRET);
    assert_eq!(places(&store).await.map(|all| all.len()), Ok(1));
    assert!(std::fs::read(server.object("ours/rec_1/p0-1.webm")).unwrap() == data[0]);
}

#[tokio::test]
async fn what_cannot_be_stored_waits_on_the_disk_until_it_can() {
    let root = tempfile::tempdir().unwrap();
    recording(root.path(), "rec_1", true, &[1000]);
    let refused = RealStore::start(PORT).await;
    let error = places(&store(root.path(), refused.addr, "wrong")).await.unwrap_err();
    assert!(error.starts_with("refused with status 403"), "{error}");

    // A port at which nobody listens.
    let nobody = std::net::TcpListener::bind(PORT).unwrap();
    let addr = nobody.local_addr().unwrap();
    drop(nobody);
    let store = store(root.path(), addr, SECRET);
    let error = places(&store).await.unwrap_err();
    assert!(
        error.starts_with("the store does not answer (") && error.contains("refused"),
        "{error}"
    );
    assert!(root.path().join("rec_1/p0-1.webm").exists());
    let server = RealStore::start(addr).await;
    assert_eq!(places(&store).await.map(|all| all.len()), Ok(1));
    assert!(server.object("ours/rec_1/p0-1.webm").exists());
}

#[tokio::test]
async fn a_file_that_could_not_be_completed_goes_to_the_store_as_far_as_it_was_written() {
    let (server, root) = (RealStore::start(PORT).await, tempfile::tempdir().unwrap());
    recording(root.path(), "rec_1", true, &[0]);
    let folder = root.path().join("rec_1");
    let (mut manifest, _) = Manifest::find(&folder).unwrap();
    manifest.files[0].complete = false;
    manifest.save(&folder).unwrap();
    std::fs::remove_file(folder.join("p0-1.webm")).unwrap();
    let shape = Shape { video: None, audio: true };
    let (mut webm, head) = Webm::new(shape, VideoCodec::Vp9, std::time::SystemTime::now());
    webm.push(Slot::Audio, Duration::ZERO, true, b"sound");
    let written = [head, webm.flush().unwrap()].concat();
    std::fs::write(folder.join("p0-1.webm.part"), &written).unwrap();

    let store = store(root.path(), server.addr, SECRET);
    assert_eq!(places(&store).await.map(|all| all.len()), Ok(1));
    assert!(std::fs::read(server.object("ours/rec_1/p0-1.webm")).unwrap() == written);
    let manifest = std::fs::read(server.object("ours/rec_1/recording-a1.json")).unwrap();
    let manifest: Manifest = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(
        (manifest.files[0].bytes, manifest.files[0].complete),
        (written.len() as u64, false)
    );
}
