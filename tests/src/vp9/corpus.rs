//! The conformance streams, by group: what is encoded and with which settings.
//!
//! Pictures are small, so that the whole default set takes less than a minute; the sizes, settings
//! and their combinations are what matters. [`sizes_all`] is the full square for long runs.

use windlass_vpx::{Control, Deadline};

use super::noise::Noise;
use super::splice;
use super::{Action, Encoding, RateControl, Scene, Stream};

/// One stream to make.
#[derive(Debug, Clone)]
pub struct Case {
    /// What reports call it.
    pub name: String,
    recipe: Recipe,
}

/// Makes another stream of a stream.
type Change = fn(&Stream) -> Result<Stream, String>;

/// A name, the first size and those that follow.
type Path = (&'static str, (usize, usize), &'static [(usize, usize)]);

/// How a stream is made.
#[derive(Debug, Clone)]
enum Recipe {
    Encoded(Encoding),
    Changed(Encoding, Change),
    Noise(Noise),
}

impl Case {
    fn new(name: impl Into<String>, encoding: Encoding) -> Case {
        Case { name: name.into(), recipe: Recipe::Encoded(encoding) }
    }

    /// The name as that of an IVF file.
    pub fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        self.name.chars().map(plain).collect::<String>() + ".ivf"
    }

    /// Makes it. The error says what libvpx refused.
    ///
    /// # Errors
    ///
    /// Fails if libvpx refuses the encoding, or the change refuses the encoded stream.
    pub fn make(&self) -> Result<Stream, String> {
        let encode = |encoding: &Encoding| {
            encoding.encode(self.name.as_str()).map_err(|e| format!("{}: {e}", self.name))
        };
        match &self.recipe {
            Recipe::Encoded(encoding) => encode(encoding),
            Recipe::Changed(encoding, change) => change(&encode(encoding)?),
            Recipe::Noise(noise) => Ok(noise.make().stream),
        }
    }
}

/// All groups but the full square of sizes.
pub fn all() -> impl Iterator<Item = Case> {
    let groups: [fn() -> Vec<Case>; 10] = [
        sizes,
        sizes_large,
        speeds,
        settings,
        hidden_references,
        resizes,
        layers,
        tiles,
        changed,
        || noise(0..40),
    ];
    groups.into_iter().flat_map(|group| group())
}

/// Settings that differ from one size to the next, so that sizes meet all kinds of frames.
fn varied(width: usize, height: usize, frames: usize, n: usize) -> Encoding {
    let scenes = [Scene::Mixed, Scene::Extremes, Scene::Pan, Scene::Text, Scene::Noise];
    let base = Encoding::new(width, height, frames)
        .scene(scenes[n % scenes.len()], n as u32)
        .set(Control::FrameParallel, (n / 2 % 2) as i32);
    match n % 4 {
        0 => base.set(Control::AqMode, 3),
        1 => base.effort(Deadline::Good, 2).look_ahead(6, 1).rate(RateControl::Vbr(200)),
        2 => base.error_resilient().effort(Deadline::Realtime, 5),
        _ => base.effort(Deadline::Good, 0).rate(RateControl::Quality(20 + (n % 40) as u32)),
    }
}

fn size(width: usize, height: usize, frames: usize, n: usize) -> Case {
    Case::new(format!("size {width}x{height} ({n})"), varied(width, height, frames, n))
}

/// Every width and every height from 1 to 66 at least once, and the corners.
pub fn sizes() -> Vec<Case> {
    // 37 and 67 have no common factor: the heights are a permutation.
    let mut cases: Vec<Case> = (1..=66).map(|w| size(w, w * 37 % 67, 6, w)).collect();
    let corners = [(1, 1), (1, 66), (66, 1), (2, 2), (8, 8), (9, 9), (64, 64), (65, 65), (66, 66)];
    cases.extend(corners.iter().enumerate().map(|(n, &(w, h))| size(w, h, 6, n)));
    cases
}

/// The full square of 1 to 66, for long runs.
pub fn sizes_all() -> impl Iterator<Item = Case> {
    (1..=66).flat_map(|h| (1..=66).map(move |w| size(w, h, 5, w * 7 + h)))
}

/// Odd sizes from 67 to 1080p and portrait.
pub fn sizes_large() -> Vec<Case> {
    [
        (67, 129, 8),
        (130, 71, 8),
        (175, 143, 8),
        (257, 199, 6),
        (353, 289, 6),
        (361, 641, 4),
        (641, 361, 4),
        (959, 541, 3),
        (1279, 719, 2),
        (719, 1279, 2),
        (1919, 1079, 2),
        (1080, 1920, 2),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (w, h, frames))| {
        Case::new(
            format!("size {w}x{h}"),
            Encoding::new(w, h, frames)
                .scene(Scene::Mixed, n as u32)
                .rate(RateControl::Cbr((w * h / 300) as u32))
                .set(Control::AqMode, (n % 2 * 3) as i32)
                .set(Control::FrameParallel, (n / 2 % 2) as i32),
        )
    })
    .collect()
}

/// Speeds of the real-time and the good-quality encoder, error-resilient or not.
pub fn speeds() -> Vec<Case> {
    let mut cases = Vec::new();
    for speed in 0..=9 {
        let base = Encoding::new(176, 144, 10)
            .scene(Scene::Mixed, speed as u32)
            .effort(Deadline::Realtime, speed);
        cases.push(Case::new(
            format!("real time {speed}"),
            base.clone().set(Control::FrameParallel, 0).set(Control::AqMode, speed % 4),
        ));
        cases.push(Case::new(format!("real time {speed} resilient"), base.error_resilient()));
    }
    for speed in 0..=5 {
        let base = Encoding::new(144, 176, 8)
            .scene(Scene::Pan, speed as u32)
            .effort(Deadline::Good, speed)
            .rate(RateControl::Vbr(150));
        cases.push(Case::new(
            format!("good {speed}"),
            base.clone().look_ahead(8, 1).set(Control::FrameParallel, 0),
        ));
        cases.push(Case::new(format!("good {speed} resilient"), base.error_resilient()));
    }
    cases.push(Case::new(
        "best",
        Encoding::new(96, 80, 6)
            .effort(Deadline::Best, 0)
            .rate(RateControl::Vbr(200))
            .set(Control::FrameParallel, 0),
    ));
    cases
}

/// Quantisers, loop filter, adaptive quantisation, regions, content tuning and all other controls.
pub fn settings() -> Vec<Case> {
    let base = || Encoding::new(152, 104, 10).set(Control::FrameParallel, 0);
    let good = |speed| base().effort(Deadline::Good, speed).rate(RateControl::Vbr(250));
    let mut cases: Vec<(String, Encoding)> = Vec::new();
    let mut add = |name: &str, encoding: Encoding| cases.push((name.to_owned(), encoding));
    for (i, scene) in
        [Scene::Mixed, Scene::Noise, Scene::Text, Scene::Extremes].into_iter().enumerate()
    {
        let name = format!("lossless {scene:?}");
        add(&name, base().scene(scene, 3).set(Control::Lossless, 1));
        for q in [1, 4, 20, 45, 63] {
            let encoding = if i % 2 == 0 { base() } else { good(1) };
            let name = format!("quantiser {q} {scene:?}");
            add(&name, encoding.scene(scene, q).quantisers(q, q).rate(RateControl::Quality(q)));
        }
    }
    add("lossless good", good(1).set(Control::Lossless, 1));
    add("lossless by quantiser", base().quantisers(0, 0));
    for mode in 0..=4 {
        add(&format!("aq {mode}"), base().set(Control::AqMode, mode).rate(RateControl::Cbr(120)));
        add(&format!("aq {mode} good"), good(2).set(Control::AqMode, mode));
        let lag = good(3).look_ahead(10, 1).set(Control::AqMode, mode).set(Control::AltRefAq, 1);
        add(&format!("aq {mode} altref"), lag);
    }
    for sharpness in 1..=7 {
        let encoding = if sharpness % 2 == 0 { base() } else { good(3) };
        add(&format!("sharpness {sharpness}"), encoding.set(Control::Sharpness, sharpness));
    }
    for mode in 1..=2 {
        add(&format!("loop filter off {mode}"), base().set(Control::DisableLoopFilter, mode));
        add(
            &format!("content {mode}"),
            base().scene(Scene::Text, 4).set(Control::TuneContent, mode),
        );
        add(
            &format!("content {mode} good"),
            good(2).scene(Scene::Text, 4).set(Control::TuneContent, mode),
        );
        let extreme = base().effort(Deadline::Realtime, 5).set(Control::ExtremeVectors, mode);
        add(&format!("extreme vectors {mode}"), extreme);
        add(&format!("extreme vectors {mode} good"), good(1).set(Control::ExtremeVectors, mode));
    }
    for offset in [-15, -5, 7, 15] {
        let encoding = base().set(Control::ChromaDeltaQ, offset);
        add(&format!("chroma quantiser {offset}"), encoding.quantisers(10, 50));
    }
    add("noise filter", base().scene(Scene::Mixed, 8).set(Control::NoiseSensitivity, 1));
    add("static threshold", base().scene(Scene::Still, 8).set(Control::StaticThreshold, 1000));
    add("still", base().scene(Scene::Still, 2));
    add("fade", good(1).scene(Scene::Fade, 2).look_ahead(8, 1));
    add("ssim", good(2).set(Control::TuneSsim, 1));
    add("golden boost", base().set(Control::GoldenBoostPercent, 200).set(Control::AqMode, 3));
    add(
        "golden intervals",
        good(4).set(Control::MinGoldenInterval, 2).set(Control::MaxGoldenInterval, 4),
    );
    add("target level", good(3).set(Control::TargetLevel, 10));
    add("colour", base().set(Control::ColourSpace, 2).set(Control::ColourRange, 1));
    add("row threads", base().set(Control::RowThreads, 1));
    add("starved", base().rate(RateControl::Cbr(5)).scene(Scene::Noise, 1));
    add("flooded", base().rate(RateControl::Cbr(50_000)).scene(Scene::Noise, 1));
    add("dropping", base().rate(RateControl::Cbr(20)).dropping(60).scene(Scene::Noise, 1));
    add("key frames", base().key_interval(3));
    add("key frames forced", good(3).at(4, Action::Key).at(5, Action::Key));
    add("rate steps", base().at(3, Action::Rate(20)).at(6, Action::Rate(3000)));
    add(
        "regions",
        base().at(1, Action::RegionQuality).at(4, Action::RegionModes).at(8, Action::NoRegions),
    );
    add("regions resilient", base().error_resilient().at(1, Action::RegionModes));
    add(
        "active map",
        base().at(2, Action::ActiveMap(0)).at(5, Action::ActiveMap(1)).at(8, Action::NoActiveMap),
    );
    add("active map with aq", base().set(Control::AqMode, 3).at(2, Action::ActiveMap(0)));
    // Flags of VP8_EFLAG_*: no update of last, golden only; no reference but golden; and so on.
    let flags = [0x4_0000, 0x1_0000, 0x22_0000, 0x8_0000, 0x10_0000, 0xc4_0000, 0x3_0000];
    let flagged = flags
        .into_iter()
        .enumerate()
        .fold(base(), |encoding, (n, flags)| encoding.at(n + 2, Action::Flags(flags)));
    add("flags", flagged.clone());
    add("flags resilient", flagged.error_resilient());
    cases.into_iter().map(|(name, encoding)| Case::new(name, encoding)).collect()
}

/// Hidden references, superframes, compound prediction, frames shown again.
pub fn hidden_references() -> Vec<Case> {
    let mut cases = Vec::new();
    for (n, scene) in [Scene::Pan, Scene::Mixed, Scene::Fade, Scene::Still].into_iter().enumerate()
    {
        for speed in [0, 2, 4] {
            let encoding = Encoding::new(128, 96, 30)
                .scene(scene, n as u32)
                .rate(RateControl::Vbr(150))
                .effort(Deadline::Good, speed)
                .set(Control::ArnrMaxFrames, 5)
                .set(Control::ArnrStrength, 3)
                .set(Control::FrameParallel, speed % 4 / 2)
                .two_pass(16, 1 + speed);
            cases.push(Case::new(format!("two-pass {scene:?} {speed}"), encoding.clone()));
            if speed == 2 {
                let name = format!("two-pass {scene:?} resilient");
                cases.push(Case::new(name, encoding.error_resilient()));
            }
        }
    }
    cases
}

/// Sizes that change in mid-stream, with scaled references.
pub fn resizes() -> Vec<Case> {
    // libvpx's encoder predicts from golden and altref even where they are more than twice as large
    // as the picture, which is not legal: it may use the last frame only.
    let last_only = Action::Flags(0x22_0000);
    let steps = |encoding: Encoding, sizes: &[(usize, usize)]| {
        let encoding = (1..18).fold(encoding, |e, n| e.at(n, last_only));
        sizes
            .iter()
            .enumerate()
            .fold(encoding, |e, (n, &(w, h))| e.at(3 * (n + 1), Action::Resize(w, h)))
    };
    let gentle = |encoding: Encoding, sizes: &[(usize, usize)]| {
        sizes
            .iter()
            .enumerate()
            .fold(encoding, |e, (n, &(w, h))| e.at(3 * (n + 1), Action::Resize(w, h)))
    };
    let base = |w, h, seed| {
        Encoding::new(w, h, 18).scene(Scene::Mixed, seed).set(Control::FrameParallel, 0)
    };
    let paths: [Path; 9] = [
        ("halves", (256, 160), &[(128, 80), (256, 160), (128, 80), (64, 40), (256, 160)]),
        ("thirds", (240, 180), &[(160, 120), (240, 180), (160, 120), (80, 60), (240, 180)]),
        ("fifths", (200, 120), &[(160, 96), (200, 120), (120, 72), (96, 58), (160, 96)]),
        ("eighth", (272, 176), &[(136, 88), (68, 44), (34, 22), (272, 176), (140, 90)]),
        ("odd", (211, 133), &[(107, 67), (201, 131), (131, 77), (199, 129), (101, 130)]),
        ("one axis", (192, 128), &[(96, 128), (192, 128), (192, 64), (96, 128), (190, 66)]),
        ("small", (66, 66), &[(33, 33), (65, 64), (40, 33), (20, 17), (66, 66)]),
        ("by one", (130, 98), &[(129, 97), (128, 96), (127, 95), (130, 96), (129, 98)]),
        ("up from small", (320, 192), &[(161, 97), (81, 49), (82, 50), (300, 180), (320, 192)]),
    ];
    let mut cases = Vec::new();
    for (n, (name, (w, h), sizes)) in paths.into_iter().enumerate() {
        let seed = n as u32;
        cases.push(Case::new(format!("resize {name}"), steps(base(w, h, seed), sizes)));
        let resilient = base(w, h, seed + 20).error_resilient().effort(Deadline::Realtime, 4);
        cases.push(Case::new(format!("resize {name} resilient"), steps(resilient, sizes)));
        let good = base(w, h, seed + 40).effort(Deadline::Good, 1).rate(RateControl::Vbr(300));
        cases.push(Case::new(format!("resize {name} good"), steps(good, sizes)));
    }
    let paths: [Path; 3] = [
        ("from golden", (192, 128), &[(96, 64), (192, 128), (144, 96), (160, 100), (110, 90)]),
        ("from golden, odd", (131, 97), &[(67, 51), (99, 77), (130, 97), (129, 50), (66, 96)]),
        (
            "from golden, fifths",
            (160, 120),
            &[(128, 96), (96, 72), (160, 120), (144, 108), (80, 60)],
        ),
    ];
    for (n, (name, (w, h), sizes)) in paths.into_iter().enumerate() {
        let seed = n as u32 + 60;
        cases.push(Case::new(format!("resize {name}"), gentle(base(w, h, seed), sizes)));
        let good = base(w, h, seed).effort(Deadline::Good, 1).rate(RateControl::Vbr(300));
        cases.push(Case::new(format!("resize {name} good"), gentle(good, sizes)));
    }
    for (h, v) in [(1, 1), (2, 2), (3, 3), (0, 3), (3, 1)] {
        cases.push(Case::new(
            format!("internal scale {h} {v}"),
            base(192, 144, h).at(4, Action::Scale(h, v)).at(9, Action::Scale(0, 0)),
        ));
    }
    cases.push(Case::new(
        "dynamic resize",
        Encoding::new(384, 256, 60)
            .scene(Scene::Noise, 3)
            .rate(RateControl::Cbr(20))
            .set(Control::FrameParallel, 0)
            .dynamic_resize(),
    ));
    cases
}

/// Temporal and spatial layers, with intra-only frames.
pub fn layers() -> Vec<Case> {
    let base =
        |seed| Encoding::new(192, 128, 16).scene(Scene::Mixed, seed).set(Control::FrameParallel, 0);
    let half = &[(1, 2), (1, 1)];
    let quarter = &[(1, 4), (1, 2), (1, 1)];
    let mut cases = vec![
        Case::new("L1T2", base(1).layers(&[(1, 1)], 2).set(Control::AqMode, 3)),
        Case::new("L1T3", base(2).layers(&[(1, 1)], 3).set(Control::AqMode, 3)),
        Case::new("L1T3 resilient", base(3).layers(&[(1, 1)], 3).error_resilient()),
        Case::new("L2T1", base(4).layers(half, 1)),
        Case::new("L2T2", base(5).layers(half, 2)),
        Case::new("L3T3", base(6).layers(quarter, 3)),
        Case::new("L3T3 resilient", base(7).layers(quarter, 3).error_resilient()),
        Case::new("L2 of 2/3", base(8).layers(&[(2, 3), (1, 1)], 1)),
        Case::new("L2 of 4/5", base(8).layers(&[(4, 5), (1, 1)], 1)),
        Case::new("L2 of one size", base(9).layers(&[(1, 1), (1, 1)], 1)),
    ];
    // Mode 1 (none at all) gives streams that libvpx itself refuses.
    let key_only = base(9).layers(quarter, 1).set(Control::InterLayerPrediction, 2);
    cases.push(Case::new("L3 inter-layer on key frames", key_only));
    for (name, layers, temporal) in
        [("L1", &[(1, 1)][..], 1), ("L2", half, 1), ("L2T3", half, 3), ("L3", quarter, 1)]
    {
        let encoding = base(10)
            .layers(layers, temporal)
            .at(4, Action::IntraOnlyBase)
            .at(9, Action::IntraOnlyBase);
        cases.push(Case::new(format!("{name} intra-only"), encoding));
    }
    cases.push(Case::new("L2 layer sync", base(11).layers(half, 1).at(5, Action::SyncLayer)));
    cases
}

/// Tile columns and rows up to the widest pictures.
pub fn tiles() -> Vec<Case> {
    let case = |w: usize, h, columns, rows, frames| {
        Case::new(
            format!("tiles {w}x{h} {columns} {rows}"),
            Encoding::new(w, h, frames)
                .scene(Scene::Mixed, w as u32)
                .effort(Deadline::Realtime, 8)
                .rate(RateControl::Cbr((w * h / 200) as u32))
                .set(Control::FrameParallel, rows % 2)
                .set(Control::TileColumns, columns)
                .set(Control::TileRows, rows),
        )
    };
    let mut cases = vec![
        case(512, 64, 1, 0, 4),
        case(517, 130, 6, 1, 4),
        case(64, 256, 0, 2, 4),
        case(96, 70, 0, 2, 4),
        case(40, 8, 0, 2, 4),
        case(300, 513, 0, 1, 3),
        case(1024, 130, 2, 2, 3),
        case(1030, 72, 2, 0, 4),
        case(2048, 66, 3, 0, 3),
        case(2056, 200, 3, 2, 2),
        case(4096, 72, 4, 1, 2),
        case(4095, 9, 6, 0, 2),
        case(4160, 64, 0, 0, 2),
    ];
    cases.push(Case::new(
        "tiles good",
        Encoding::new(1100, 70, 4)
            .effort(Deadline::Good, 4)
            .rate(RateControl::Vbr(600))
            .set(Control::TileColumns, 2)
            .set(Control::TileRows, 1),
    ));
    cases.push(Case::new(
        "tiles resized",
        Encoding::new(1088, 96, 8)
            .set(Control::TileColumns, 2)
            .at(3, Action::Resize(544, 48))
            .at(5, Action::Resize(1088, 96)),
    ));
    cases
}

/// Encoded streams changed afterwards: slots shown again, superframes, header values that libvpx's
/// encoder never writes. The changes do not touch how the rest of a frame is parsed.
pub fn changed() -> Vec<Case> {
    let base =
        |seed| Encoding::new(150, 110, 14).scene(Scene::Mixed, seed).set(Control::FrameParallel, 0);
    let one_filter = base(3).scene(Scene::Pan, 3).effort(Deadline::Realtime, 8);
    let resized = base(4)
        .at(4, Action::Resize(100, 90))
        .at(8, Action::Resize(131, 77))
        .at(11, Action::Resize(150, 110));
    let hidden = Encoding::new(128, 96, 30)
        .scene(Scene::Pan, 5)
        .rate(RateControl::Vbr(150))
        .set(Control::FrameParallel, 0)
        .two_pass(12, 1);
    let layered = base(6).layers(&[(1, 2), (1, 1)], 2).at(5, Action::IntraOnlyBase);
    let segmented = base(7).set(Control::AqMode, 3);
    let recipes: [(&str, Encoding, Change); 16] = [
        ("slots shown", base(1), |s| Ok(splice::show_slots(s, 2))),
        ("slots shown, hidden references", hidden.clone(), |s| Ok(splice::show_slots(s, 1))),
        ("slots shown, resized", resized.clone(), |s| Ok(splice::show_slots(s, 1))),
        ("slots shown, layers", layered, |s| Ok(splice::show_slots(s, 2))),
        ("pairs", base(2), |s| Ok(splice::pair_up(s))),
        ("pairs, hidden references", hidden.clone(), |s| Ok(splice::pair_up(s))),
        ("pairs, slots shown", resized.clone(), |s| Ok(splice::pair_up(&splice::show_slots(s, 2)))),
        ("filters", one_filter, |s| {
            splice::rewrite(s, "with other filters", |n, h| {
                if h.interpolation_filter < 4 {
                    h.interpolation_filter = (n % 4) as u8;
                }
            })
        }),
        ("filters, resized", resized.clone(), |s| {
            splice::rewrite(s, "with other filters", |n, h| {
                if h.interpolation_filter < 4 {
                    h.interpolation_filter = 3 - (n % 4) as u8;
                }
            })
        }),
        ("loop filter levels", base(8), |s| {
            splice::rewrite(s, "with other levels", |n, h| {
                h.loop_filter.level = (n * 5 % 64) as u8;
                h.loop_filter.sharpness = (n % 8) as u8;
            })
        }),
        ("loop filter deltas", hidden.clone(), |s| {
            splice::rewrite(s, "with other deltas", |n, h| {
                let n = n as i8;
                h.loop_filter.level = h.loop_filter.level.max(1);
                h.loop_filter.delta_enabled = n % 3 > 0;
                h.loop_filter.ref_deltas = [n * 4 - 63, 63 - n * 3, n - 9, 9 - n];
                h.loop_filter.mode_deltas = [n * 2 - 30, 31 - n * 2];
            })
        }),
        ("quantiser offsets", base(9), |s| {
            splice::rewrite(s, "with other offsets", |n, h| {
                let offset = |k: usize| (n * k % 31) as i32 - 15;
                h.quantization.delta_q_y_dc = offset(1);
                h.quantization.delta_q_uv_dc = offset(3);
                h.quantization.delta_q_uv_ac = offset(7);
            })
        }),
        ("segment values", segmented, |s| {
            splice::rewrite(s, "with other segment values", |n, h| {
                h.segmentation.abs_or_delta_update = n % 3 == 2;
                for segment in 0..8 {
                    let data = &mut h.segmentation.feature_data[segment];
                    data[0] = if n % 3 == 2 { 20 * segment as i32 } else { 5 - segment as i32 * 9 };
                    data[1] = if n % 3 == 2 { 8 * segment as i32 } else { 30 - segment as i32 * 9 };
                    h.segmentation.feature_enabled[segment][0] = n % 2 == 0;
                    h.segmentation.feature_enabled[segment][1] = n % 4 < 2;
                }
            })
        }),
        ("references", base(10), other_slots),
        ("references, resized", resized, other_slots),
        ("hidden and rendered", hidden, |s| {
            splice::rewrite(s, "with other render sizes", |n, h| {
                h.render_width = 1 + (n as u32 * 77) % 400;
                h.render_height = 1 + (n as u32 * 31) % 300;
            })
        }),
    ];
    recipes
        .into_iter()
        .map(|(name, encoding, change)| Case {
            name: name.to_owned(),
            recipe: Recipe::Changed(encoding, change),
        })
        .collect()
}

/// Other slots to refer to and to store in.
fn other_slots(stream: &Stream) -> Result<Stream, String> {
    splice::rewrite(stream, "with other slots", |n, h| {
        if !h.frame_is_intra {
            h.ref_frame_idx = [n % 8, n * 3 % 8, n * 5 % 8].map(|slot| slot as u8);
            h.refresh_frame_flags = (n * 37) as u8;
        }
    })
}

/// Random bits under sound headers: small pictures of one size, larger ones, changing sizes.
pub fn noise(seeds: std::ops::Range<u32>) -> Vec<Case> {
    seeds
        .map(|seed| {
            let largest = [(20, 20), (70, 70), (140, 140), (300, 200)][seed as usize % 4];
            let noise = Noise { seed, frames: 40, largest, resizes: seed % 3 > 0 };
            Case { name: format!("noise {seed}"), recipe: Recipe::Noise(noise) }
        })
        .collect()
}
