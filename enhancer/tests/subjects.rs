//! Faces and text in real pictures: clips of the folder `WINDLASS_CLIPS`, read by `ffmpeg`.

use std::process::Command;

use windlass_enhancer::tiles::Subjects;
use windlass_vp9::Samples;

/// What the tiles of a second into a clip count for, made 320×180; `None`, said, where it cannot be read.
fn weights(clip: &str, crop: &str) -> Option<Vec<f64>> {
    let file = windlass_files::clip(clip);
    let filter = format!("crop={crop},scale=320:180");
    let read = Command::new("ffmpeg")
        .args(["-v", "error", "-ss", "1", "-i"])
        .arg(&file)
        .args(["-vf", &filter, "-frames:v", "1", "-pix_fmt", "gray", "-f", "rawvideo", "-"])
        .output();
    let data = read.ok().filter(|out| out.stdout.len() == 320 * 180).map(|out| out.stdout);
    let Some(data) = data else {
        windlass_skips::skip(format!("{} cannot be read; set WINDLASS_CLIPS", file.display()));
        return None;
    };
    let luma = Samples { data: &data, stride: 320, width: 320, height: 180 };
    Some(Subjects::new().weigh(luma))
}

#[test]
fn the_tiles_of_a_face_count_for_most() {
    for (clip, crop) in [
        ("LivePortrait__d13.mp4", "720:405:0:300"),
        ("LivePortrait__s18.mp4", "iw:iw*9/16:0:(ih-iw*9/16)/2"),
    ] {
        let Some(weights) = weights(clip, crop) else { return };
        // Both sit in the middle; nobody is in the corners.
        let middle = weights[7].max(weights[2]);
        assert!(middle >= 1.5, "{clip}: {weights:?}");
        for corner in [0, 4, 14] {
            assert!(weights[corner] < middle, "{clip}: {weights:?}");
        }
    }
}

#[test]
fn the_tiles_of_text_count_for_most_on_a_screen() {
    let Some(weights) = weights("gh-scoped-creds__screencast.mp4", "1616:908:0:300") else {
        return;
    };
    assert!(weights[0] > 2.0, "{weights:?}");
    assert!(weights[2] <= 1.0, "{weights:?}");
}
