//! The recorder between its neighbours: signalling orders and is told, the SFU gives media.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::sync::mpsc;
use windlass_record::{EndReason, Event, Hooks, Manifest, Order, Person, Recorder};
use windlass_sfu::{RecordSink, SfuHandle};
use windlass_signaling::{
    EventFile, EventRecording, Metric, RecordingEnd, RecordingOrder, Signaling,
};

/// Most files that a webhook names.
const MAX_TOLD: usize = 100;

/// A server's recorder.
#[derive(Clone)]
pub(crate) struct Recording {
    recorder: Recorder,
    /// Names this server's part of a recording.
    part: Arc<str>,
}

impl Recording {
    /// A recorder that writes into a folder.
    pub(crate) fn open(folder: &Path) -> Result<Recording> {
        let recorder = Recorder::new(folder).context("--record-to: recordings have no place")?;
        Ok(Recording { recorder, part: format!("{:08x}", rand::random::<u32>()).into() })
    }

    /// Takes what the SFU gives.
    pub(crate) fn sink(&self) -> RecordSink {
        self.recorder.sink()
    }

    /// Starts its thread.
    pub(crate) fn start(&self, sfu: SfuHandle, signaling: Signaling) -> Result<()> {
        // As many events as recordings end.
        let (events, mut ended) = mpsc::unbounded_channel();
        let people = signaling.clone();
        self.recorder.start(Hooks {
            who: Box::new(move |id| {
                let (info, _) = people.participant(id)?;
                Some(Person { identity: info.identity, name: info.name })
            }),
            key_frame: Box::new(move |track| sfu.request_recorded_key_frame(track)),
            event: Box::new(move |event| _ = events.send(event)),
        })?;
        tokio::spawn(async move {
            while let Some(event) = ended.recv().await {
                let Event::Ended { manifest, folder } = event;
                signaling.recording_ended(&manifest.room, told(&manifest, &folder)).await;
            }
        });
        Ok(())
    }

    /// Completes all files. Recordings go on when the server is started again.
    pub(crate) async fn stop(&self) {
        let recorder = self.recorder.clone();
        let _ = tokio::task::spawn_blocking(move || recorder.stop()).await;
    }

    /// What `/metrics` tells of it.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let counts = self.recorder.counts();
        vec![
            Metric::new("windlass_recordings", counts.recordings),
            Metric::new("windlass_recordings_failed_total", counts.failed),
            Metric::new("windlass_recorded_bytes_total", counts.bytes),
            Metric::new("windlass_recorder_dropped_total", counts.dropped),
            Metric::new("windlass_recorder_gaps_total", counts.gaps),
            Metric::new("windlass_recorder_late_total", counts.late),
        ]
    }
}

impl windlass_signaling::Recorder for Recording {
    fn begin(&self, order: &RecordingOrder) -> Result<(), String> {
        let RecordingOrder { recording, room, participant, since } = order.clone();
        let (started, part) = (since as f64 / 1000.0, self.part.to_string());
        let order = Order { recording, room, participant, started, part };
        self.recorder.begin(order).map(|_| ()).map_err(|error| error.to_string())
    }

    fn end(&self, room: &str, why: RecordingEnd) {
        let reason = match why {
            RecordingEnd::Stopped => EndReason::Stopped,
            RecordingEnd::RoomEmpty => EndReason::RoomEmpty,
        };
        self.recorder.end(room, reason);
    }

    fn unfinished(&self) -> Vec<RecordingOrder> {
        let open = self.recorder.unfinished().into_iter();
        let order = |order: Order| {
            let Order { recording, room, participant, started, .. } = order;
            RecordingOrder {
                recording,
                room,
                participant,
                since: (started * 1000.0).round() as u64,
            }
        };
        open.map(order).collect()
    }
}

/// What webhooks say of a recording that has ended.
fn told(manifest: &Manifest, folder: &Path) -> EventRecording {
    let files = manifest.files.iter().take(MAX_TOLD).map(|file| EventFile {
        file: file.file.clone(),
        participant: file.participant.clone(),
        identity: file.identity.clone(),
        offset: file.offset,
        duration: file.duration,
        bytes: file.bytes,
        tracks: file.tracks.iter().map(|track| track.kind.clone()).collect(),
    });
    EventRecording {
        id: manifest.recording.clone(),
        participant: manifest.participant.clone(),
        path: Some(folder.display().to_string()),
        manifest: Some(manifest.file_name()),
        bytes: Some(manifest.bytes()),
        duration: Some(manifest.duration()),
        files: files.collect(),
        reason: manifest.reason.map(|reason| reason.name().to_owned()),
        error: manifest.error.clone(),
    }
}
