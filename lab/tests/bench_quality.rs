//! `windlass-lab bench engine --quality` from outside, on a drawn scene.

use std::io::Write;
use std::path::Path;
use std::process::Command;

const WIDTH: usize = 192;
const HEIGHT: usize = 128;
const FRAMES: usize = 6;

/// A pan over a texture, as raw video that ffmpeg reads.
fn draw(path: &Path) {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    writeln!(file, "YUV4MPEG2 W{WIDTH} H{HEIGHT} F30:1 Ip A1:1 C420mpeg2").unwrap();
    for n in 0..FRAMES {
        file.write_all(b"FRAME\n").unwrap();
        let luma = (0..WIDTH * HEIGHT).map(|i| {
            let (x, y) = ((i % WIDTH + 2 * n) as f32, (i / WIDTH) as f32);
            (128.0 + 50.0 * (x * 0.7).sin() + 40.0 * (y * 0.9 + x * 0.05).cos()) as u8
        });
        file.write_all(&luma.collect::<Vec<u8>>()).unwrap();
        file.write_all(&[128; WIDTH * HEIGHT / 2]).unwrap();
    }
}

fn windlass_lab(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_windlass-lab")).args(args).output().unwrap()
}

#[test]
fn a_drawn_scene_gives_finite_figures_and_a_picture_of_the_expected_size() {
    if !Command::new("ffmpeg").arg("-version").output().is_ok_and(|done| done.status.success()) {
        windlass_skips::skip("no ffmpeg (Debian's package ffmpeg)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scene = folder.path().join("scene.y4m");
    draw(&scene);
    let models = "../models";
    let [xs, third] = ["xs-x2", "xs-x3"].map(|name| format!("{models}/{name}.safetensors"));
    let clip = format!("{}@name=scene", scene.display());
    let crops = folder.path().join("crops");
    let done = windlass_lab(&[
        "bench",
        "engine",
        "--quality",
        &clip,
        "--models",
        &xs,
        &third,
        "--uplink",
        "100,300",
        "--crops",
        crops.to_str().unwrap(),
        "--passes",
        "1",
        "--seconds",
        "0",
        "--json",
    ]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");

    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["network"].as_str()).collect();
    assert_eq!(names, ["xs-x2", "xs-x3"]);
    for (row, input) in rows.iter().zip(["96x64", "64x42"]) {
        assert_eq!(row["input"], input);
        for key in ["macs", "frame_ms", "gflops", "peak_gflops", "peak_share"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {row}");
        }
        let gains = row["quality"].as_array().unwrap();
        assert_eq!(gains.len(), 2, "one for each uplink: {row}");
        for gain in gains {
            assert!(gain["psnr_y_db"].as_f64().is_some_and(|db| db > 15.0), "{gain}");
            let over = gain["over_bicubic_db"].as_f64();
            assert!(over.is_some_and(|db| db.is_finite() && db.abs() < 20.0), "{gain}");
        }
    }

    let picture = std::fs::File::open(crops.join("scene_300k.png")).unwrap();
    let picture = png::Decoder::new(std::io::BufReader::new(picture)).read_info().unwrap();
    // Four panels of 160 × 128 samples for ×2, of 160 × 126 for ×3: two pixels each, and four between them.
    assert_eq!((picture.info().width, picture.info().height), (4 * 324 - 4, 256 + 4 + 252));
    let order = std::fs::read_to_string(crops.join("scene_300k.txt")).unwrap();
    assert!(order.contains("source ×2 | bicubic | lanczos@0.3 | xs-x2"), "{order}");
}

#[test]
fn help_and_refusals_say_what_to_do() {
    let help = windlass_lab(&["bench", "engine", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    for part in ["--quality", "--models", "--uplink", "--crops", "--crop-at", "Examples:"] {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
    let refused =
        windlass_lab(&["bench", "engine", "--quality", "/no/such.mp4", "--uplink", "100"]);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("/no/such.mp4"), "{error}");
    let refused = windlass_lab(&["bench", "engine", "--crops", "out"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--quality"));
}
