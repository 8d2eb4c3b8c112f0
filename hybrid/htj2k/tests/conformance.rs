//! Our streams in other people's decoders, theirs in ours: OpenJPEG's `opj_decompress`, OpenJPH's
//! `ojph_expand` and `ojph_compress`. Without these tools the tests say so and pass.

mod common;

use std::path::Path;
use std::process::Command;

use common::picture;
use windlass_htj2k::{Encoder, Format, Limits, decode, encode_lossless};

const LIMITS: Limits = Limits { max_side: 4096, max_area: 1 << 22 };
const SIZES: [(u32, u32); 7] =
    [(1, 1), (2, 3), (17, 1), (63, 65), (200, 150), (321, 130), (640, 360)];

/// Whether a tool is installed; says so if not.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("-h").output().is_ok();
    if !found {
        eprintln!("{tool} is not installed: skipped");
    }
    found
}

fn run(tool: &str, arguments: &[&str]) {
    let done = Command::new(tool).args(arguments).output().expect("it was found before");
    let text = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{tool} {arguments:?}: {text}");
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

fn words(bytes: &[u8], word: impl Fn([u8; 2]) -> i16) -> Vec<i16> {
    bytes.as_chunks::<2>().0.iter().map(|&b| word(b)).collect()
}

/// The samples of a PGM file, which end it.
fn read_pgm(file: &str, format: Format) -> Vec<i16> {
    let bytes = std::fs::read(file).expect("the tool wrote it");
    let count = (format.width * format.height) as usize;
    if format.bits > 8 {
        words(&bytes[bytes.len() - 2 * count..], i16::from_be_bytes)
    } else {
        bytes[bytes.len() - count..].iter().map(|&b| i16::from(b)).collect()
    }
}

fn write_pgm(file: &str, format: Format, samples: &[i16]) {
    let most = (1 << format.bits) - 1;
    let mut bytes = format!("P5\n{} {}\n{most}\n", format.width, format.height).into_bytes();
    for s in samples {
        if most > 255 {
            bytes.extend_from_slice(&s.to_be_bytes());
        } else {
            bytes.push(*s as u8);
        }
    }
    std::fs::write(file, bytes).expect("a temporary file");
}

fn assert_near(ours: &[i16], theirs: &[i16], most: i32, of: &str) {
    assert_eq!(ours.len(), theirs.len(), "{of}");
    let far = ours.iter().zip(theirs).map(|(a, b)| (i32::from(*a) - i32::from(*b)).abs()).max();
    assert!(far.unwrap_or(0) <= most, "{of}: up to {far:?} apart");
}

#[test]
fn openjpeg_decodes_our_streams() {
    if !has("opj_decompress") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (stream, raw) = (path(folder.path(), "a.j2c"), path(folder.path(), "a.rawl"));
    for (width, height) in SIZES {
        let format = Format { width, height, bits: 13, signed: true };
        let samples = picture(format, 0.5, width);
        let encoder = Encoder::new(&samples, format, 5).expect("a legal picture");
        let coded = [1.0, 20.0, 333.0].map(|step| (encoder.encode(step), 1));
        let exact = encode_lossless(&samples, format, 5).expect("a legal picture");
        for (coded, most) in coded.into_iter().chain([(exact, 0)]) {
            std::fs::write(&stream, &coded).expect("a temporary file");
            run("opj_decompress", &["-i", &stream, "-o", &raw]);
            // It writes thirteen bits of each sample.
            let signed = |b| i16::from_le_bytes(b) << 3 >> 3;
            let theirs = words(&std::fs::read(&raw).expect("its output"), signed);
            let ours = decode(&coded, LIMITS).expect("our own stream").samples;
            assert_near(&ours, &theirs, most, &format!("{width}x{height}"));
            if most == 0 {
                assert_eq!(theirs, samples);
            }
        }
    }
}

#[test]
fn openjph_decodes_our_streams() {
    if !has("ojph_expand") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (stream, pgm) = (path(folder.path(), "a.j2c"), path(folder.path(), "a.pgm"));
    // Release 0.9 writes wrong samples of pictures of a few columns, of its own streams as well.
    for (width, height) in SIZES.into_iter().filter(|size| size.0 > 16) {
        for bits in [8, 12] {
            let format = Format { width, height, bits, signed: false };
            let samples = picture(format, 0.5, width);
            let encoder = Encoder::new(&samples, format, 4).expect("a legal picture");
            let coded = [0.5, 7.0, 90.0].map(|step| (encoder.encode(step), 1));
            let exact = encode_lossless(&samples, format, 4).expect("a legal picture");
            for (coded, most) in coded.into_iter().chain([(exact, 0)]) {
                std::fs::write(&stream, &coded).expect("a temporary file");
                run("ojph_expand", &["-i", &stream, "-o", &pgm]);
                let ours = decode(&coded, LIMITS).expect("our own stream").samples;
                assert_near(
                    &ours,
                    &read_pgm(&pgm, format),
                    most,
                    &format!("{width}x{height}, {bits} bits"),
                );
            }
        }
    }
}

#[test]
fn we_decode_openjphs_streams() {
    if !has("ojph_compress") || !has("opj_decompress") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [source, stream, pgm] = ["s.pgm", "a.j2c", "a.pgm"].map(|name| path(folder.path(), name));
    let ways: [&[&str]; 9] = [
        &["-reversible", "true"],
        &["-reversible", "true", "-num_decomps", "0", "-block_size", "{32,32}"],
        &[
            "-reversible",
            "true",
            "-num_decomps",
            "3",
            "-block_size",
            "{4,1024}",
            "-prog_order",
            "LRCP",
        ],
        &["-qstep", "0.001"],
        &["-qstep", "0.02", "-num_decomps", "2", "-block_size", "{1024,4}"],
        &["-qstep", "0.1", "-prog_order", "CPRL"],
        &["-qstep", "0.005", "-precincts", "{64,64},{128,32}", "-prog_order", "RPCL"],
        &["-reversible", "true", "-precincts", "{32,16},{32,64},{128,128}", "-prog_order", "RLCP"],
        &["-qstep", "0.01", "-num_decomps", "7", "-block_size", "{8,8}", "-prog_order", "PCRL"],
    ];
    for (width, height) in SIZES {
        for bits in [8, 12] {
            let format = Format { width, height, bits, signed: false };
            let samples = picture(format, 0.7, height);
            write_pgm(&source, format, &samples);
            for way in ways {
                let arguments: Vec<&str> =
                    ["-i", &source, "-o", &stream].iter().chain(way).copied().collect();
                run("ojph_compress", &arguments);
                run("opj_decompress", &["-i", &stream, "-o", &pgm]);
                let coded = std::fs::read(&stream).expect("its output");
                let ours = decode(&coded, LIMITS)
                    .unwrap_or_else(|e| panic!("{way:?} {width}x{height}: {e}"));
                assert_eq!(ours.format, format);
                let exact = way.contains(&"-reversible");
                assert_near(
                    &ours.samples,
                    &read_pgm(&pgm, format),
                    i32::from(!exact),
                    &format!("{way:?}"),
                );
                if exact {
                    assert_eq!(ours.samples, samples, "{way:?} {width}x{height}");
                }
            }
        }
    }
}

#[path = "../examples/digest.rs"]
mod digest;

#[test]
fn streams_and_samples_are_those_of_all_targets() {
    assert_eq!(format!("{:016x}", digest::digest()), "462cfcdf94417cbd");
}
