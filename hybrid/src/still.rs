//! A publisher's stills: what its camera shows beyond the prediction from its low layer, encoded as an anchor.
//!
//! The publisher decodes its own low layer as it leaves. So it has, bit for bit, the picture that subscribers
//! enlarge. It encodes only what is missing there ([`prior`](crate::anchor::prior), [`colour`]), by
//! [HTJ2K](crate::anchor::codec). The server passes the still on as it is.
//!
//! In: frames of the low layer in order, camera pictures, bytes that a still may take. Out: payloads of captured
//! anchors. It refuses frames that it does not remember, and cameras smaller than the picture that is asked for.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::anchor::codec::{AnchorCodecError, Htj2k, detail_of};
use crate::anchor::colour;
use crate::anchor::payload::{self, Packed};
use crate::anchor::prior::Prior;
use crate::resample::area;
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::simd::Isa;
use windlass_vp9::{DecodeError, Decoder, FrameBuffer, Samples, SizeLimit};

/// Number of low pictures that are remembered: a still is made of a frame that has just been sent.
const REMEMBERED: usize = 8;

/// The still that a publisher is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StillRequest<'a> {
    /// RTP timestamp of the frame of the low layer that the still is for.
    pub rtp_timestamp: u32,
    /// HR size over LR size: 2, 3 or 4.
    pub scale: usize,
    /// The bits of the map of the tiles to give, as [`windlass_types::tiles`] has them.
    pub tiles: &'a [u8],
    /// Maximum length of the payload, in bytes.
    pub bytes: usize,
}

/// An anchor's payload, of detail beyond the prior.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Still {
    /// The tile map, where there is one, and the code.
    pub payload: Vec<u8>,
    /// Whether the payload begins with a tile map.
    pub tiled: bool,
    /// Size of the HR picture.
    pub size: Size,
}

/// Why there is no still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StillError {
    /// The low picture of the frame is not remembered: frames were missing before it, or it is too old.
    #[error("the low picture of the still's frame is not known")]
    NoBase,
    /// The tile map is not one of the low picture.
    #[error("the still's tile map is not one of its low picture")]
    Tiles,
    /// The camera's picture is smaller than the one that is asked for.
    #[error("the camera's picture is smaller than the still that is asked for")]
    Camera,
    /// The still cannot be encoded in so few bytes, or not at all.
    #[error("{0}")]
    Code(#[from] AnchorCodecError),
}

/// Makes the stills of one publisher: low layer and camera pictures in, payloads of captured anchors out.
#[derive(Debug)]
pub struct StillMaker {
    decoder: Decoder,
    lows: VecDeque<(u32, Arc<FrameBuffer>)>,
    prior: Option<(usize, Prior)>,
}

impl Default for StillMaker {
    fn default() -> Self {
        Self::limited(SizeLimit::default())
    }
}

impl StillMaker {
    /// A maker of stills that waits for a key frame, and takes no low picture beyond `limit`.
    pub fn limited(limit: SizeLimit) -> Self {
        let decoder = Decoder::with_limit(limit).lending(REMEMBERED);
        Self { decoder, lows: VecDeque::with_capacity(REMEMBERED), prior: None }
    }

    /// Takes the next frame of the low layer. After an error the maker waits for a key frame.
    ///
    /// # Errors
    ///
    /// Fails if the VP9 decoder refuses the frame ([`Decoder::decode`]).
    pub fn follow(&mut self, rtp_timestamp: u32, frame: &[u8]) -> Result<(), DecodeError> {
        let frames = self.decoder.decode(frame)?;
        let shown = frames.iter().rev().find(|frame| frame.info.shown);
        if let Some(low) = shown.map(|frame| frame.picture.clone()) {
            self.follow_picture(rtp_timestamp, low);
        }
        Ok(())
    }

    /// Takes the picture that another decoder made of the next frame of the low layer: for codecs other than VP9.
    pub fn follow_picture(&mut self, rtp_timestamp: u32, low: Arc<FrameBuffer>) {
        if self.lows.len() == REMEMBERED {
            self.lows.pop_front();
        }
        self.lows.push_back((rtp_timestamp, low));
    }

    /// Forgets all frames, where some are missing, and waits for a key frame.
    pub fn reset(&mut self) {
        self.decoder.reset();
        self.lows.clear();
    }

    /// Whether only a key frame can be followed next.
    pub fn needs_key_frame(&self) -> bool {
        self.decoder.needs_key_frame()
    }

    /// Makes the still of a frame from the camera's luma and chroma. Chroma is half as wide and high, rounded up.
    ///
    /// # Errors
    ///
    /// Fails if the frame's low picture is not known any more, the tile map is not one of that picture, the camera's
    /// picture is too small for the scale, or the still does not fit the bytes.
    ///
    /// # Panics
    ///
    /// Panics if the scale is not 2, 3 or 4.
    pub fn make(
        &mut self,
        camera: [Samples<'_>; 3],
        request: &StillRequest<'_>,
    ) -> Result<Still, StillError> {
        let StillRequest { rtp_timestamp, scale, .. } = *request;
        let low = self.lows.iter().rev().find(|(at, _)| *at == rtp_timestamp);
        let frame = &low.ok_or(StillError::NoBase)?.1;
        let low = &frame.planes()[0];
        let tiles = TileMap::parse(Size::saturating(low.width(), low.height()), request.tiles);
        let tiles = tiles.ok_or(StillError::Tiles)?;
        let size = frame.size().scaled(scale);
        // A side that is no multiple of the low layer's was rounded: less than a low sample.
        let [luma, u, v] = camera;
        if luma.width + scale <= size.width || luma.height + scale <= size.height {
            return Err(StillError::Camera);
        }
        let mut detail = detail_of(&area(luma, size), low, scale)?;
        let prior = match &mut self.prior {
            Some((known, prior)) if *known == scale => prior,
            other => &mut other.insert((scale, Prior::new(Isa::detect(), scale))).1,
        };
        prior.take_out(low.into(), &mut detail);
        let map = if tiles.is_full() { 0 } else { request.tiles.len() };
        let image = payload::image(detail, &tiles, scale);
        let [u, v] = [u, v].map(|plane| area(plane, size.chroma()));
        let colour = colour::image([(&u).into(), (&v).into()], frame.samples(), &tiles, scale);
        let code = Htj2k::fill(&image, Some(&colour), request.bytes.saturating_sub(map))?;
        let Packed { payload, tiled } = payload::pack(&tiles, code);
        Ok(Still { payload, tiled, size: Size::saturating(size.width, size.height) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anchor::fixture::low_layer;
    use crate::{AnchorOutcome, HybridConfig, HybridDecoder};
    use windlass_types::AnchorSource;
    use windlass_types::message::HTJ2K;
    use windlass_types::message::{AnchorHeader, ReassembledAnchor};
    use windlass_vp9::{Plane, psnr};

    const ALL: [u8; 1] = [0b11];
    const LEFT: [u8; 1] = [0b01];
    const REQUEST: StillRequest<'static> =
        StillRequest { rtp_timestamp: 6000, scale: 2, tiles: &ALL, bytes: 2500 };

    /// Has followed three frames of a low layer of 96 × 64 samples.
    fn maker() -> StillMaker {
        let mut maker = StillMaker::default();
        for (n, frame) in low_layer()[..3].iter().enumerate() {
            maker.follow(n as u32 * 3000, frame).expect("a sound stream");
        }
        maker
    }

    /// The camera's luma at the third frame: see `lab/examples/low_layer.rs`.
    fn camera() -> Plane {
        let samples = (0..192 * 128).map(|i| {
            let (x, y) = ((i % 192) as f32, (i / 192) as f32);
            let moving = ((x + 4.0) * 1.3).sin() * (y * 1.1).cos();
            (128.0 + 30.0 * moving + 40.0 * (x * 0.05 + y * 0.08).sin()) as u8
        });
        Plane::from_samples(192, 128, samples.collect()).expect("the count is right")
    }

    /// The camera's chroma: waves that are too fine for the low layer's.
    fn chroma() -> [Plane; 2] {
        [0.9, 1.4].map(|fine: f32| {
            let samples = (0..96 * 64).map(|i| {
                let (x, y) = ((i % 96) as f32, (i / 96) as f32);
                (128.0 + 40.0 * (x * fine).sin() * (y * 0.3).cos()) as u8
            });
            Plane::from_samples(96, 64, samples.collect()).expect("the count is right")
        })
    }

    fn make(maker: &mut StillMaker, request: &StillRequest<'_>) -> Result<Still, StillError> {
        let [u, v] = chroma();
        maker.make([(&camera()).into(), (&u).into(), (&v).into()], request)
    }

    /// A grey picture of any size.
    fn grey(width: usize, height: usize) -> [Plane; 3] {
        let chroma = Plane::filled(width.div_ceil(2), height.div_ceil(2), 128);
        [Plane::filled(width, height, 100), chroma.clone(), chroma]
    }

    #[test]
    fn a_still_is_the_same_over_pictures_of_another_decoder() {
        let (mut decoder, mut other) = (Decoder::new(), StillMaker::default());
        for (n, frame) in low_layer()[..3].iter().enumerate() {
            let low = decoder.decode(frame).expect("a sound stream")[0].picture.clone();
            other.follow_picture(n as u32 * 3000, low);
        }
        assert_eq!(make(&mut other, &REQUEST), make(&mut maker(), &REQUEST));
    }

    #[test]
    fn a_still_shows_subscribers_what_the_camera_saw() {
        let still = make(&mut maker(), &REQUEST).expect("it can be made");
        assert!(!still.tiled && still.payload.len() <= REQUEST.bytes);
        let mut viewer = HybridDecoder::new(HybridConfig::default());
        for (n, frame) in low_layer()[..3].iter().enumerate() {
            viewer.push_frame(n as u32 * 3000, frame).expect("a sound stream");
        }
        let shown = |viewer: &HybridDecoder| {
            let hr = viewer.hr().expect("shown");
            let [u, v] = chroma();
            [psnr(&hr.y, &camera()), psnr(&hr.u, &u), psnr(&hr.v, &v)]
        };
        let before = shown(&viewer);
        let header = AnchorHeader {
            beyond_prior: true,
            ..AnchorHeader::new(HTJ2K, AnchorSource::Captured, 6000, Size::new(192, 128))
        };
        let outcome = viewer.push_anchor(&ReassembledAnchor { header, payload: still.payload });
        assert_eq!(outcome, AnchorOutcome::Applied { frames_late: 0 });
        viewer.refresh();
        let after = shown(&viewer);
        for (before, after) in before.into_iter().zip(after) {
            assert!(after > before + 3.0, "{before} and {after} dB");
        }
    }

    #[test]
    fn it_is_bit_for_bit_what_the_server_makes_of_the_same_picture() {
        let mut decoder = Decoder::new();
        let mut low = None;
        for frame in &low_layer()[..3] {
            low = decoder.decode(frame).expect("sound").last().map(|shown| shown.picture.clone());
        }
        let low = low.expect("shown");
        let ([u, v], tiles) = (chroma(), TileMap::full(Size::new(96, 64)));
        let colour = colour::image([(&u).into(), (&v).into()], low.samples(), &tiles, 2);
        let luma = Samples::from(&low.planes()[0]);
        let mut detail = detail_of(&camera(), luma, 2).expect("twice the size");
        Prior::new(Isa::detect(), 2).take_out(luma, &mut detail);
        let code = Htj2k::fill(&detail, Some(&colour), REQUEST.bytes).expect("it fits");
        assert_eq!(make(&mut maker(), &REQUEST).map(|still| still.payload), Ok(code));
    }

    #[test]
    fn of_some_tiles_it_gives_those_alone_behind_their_map() {
        let request = StillRequest { tiles: &LEFT, ..REQUEST };
        let still = make(&mut maker(), &request).expect("it can be made");
        assert!(still.tiled && still.payload[0] == LEFT[0]);
        assert!(still.payload.len() <= REQUEST.bytes);
    }

    #[test]
    fn a_camera_of_any_larger_size_is_reduced_and_one_that_is_smaller_refused() {
        let mut maker = maker();
        for size in [(1280, 853), (193, 129), (191, 127)] {
            let camera = grey(size.0, size.1);
            assert!(maker.make(camera.each_ref().map(Into::into), &REQUEST).is_ok(), "{size:?}");
        }
        let small = grey(190, 128);
        let refused = maker.make(small.each_ref().map(Into::into), &REQUEST);
        assert_eq!(refused, Err(StillError::Camera));
    }

    #[test]
    fn without_its_low_picture_or_enough_bytes_there_is_none() {
        let mut maker = maker();
        let unknown = StillRequest { rtp_timestamp: 6001, ..REQUEST };
        assert_eq!(make(&mut maker, &unknown), Err(StillError::NoBase));
        let tight = StillRequest { bytes: 50, ..REQUEST };
        assert!(matches!(make(&mut maker, &tight), Err(StillError::Code(_))));
        let tiles = StillRequest { tiles: &[0b100], ..REQUEST };
        assert_eq!(make(&mut maker, &tiles), Err(StillError::Tiles));
        maker.reset();
        assert_eq!(make(&mut maker, &REQUEST), Err(StillError::NoBase));
        assert!(maker.needs_key_frame() && maker.follow(9000, &low_layer()[3]).is_err());
        maker.follow(0, &low_layer()[0]).expect("a key frame");
        assert!(make(&mut maker, &StillRequest { rtp_timestamp: 0, ..REQUEST }).is_ok());
    }

    #[test]
    fn a_frame_of_long_ago_is_forgotten() {
        let mut maker = maker();
        for n in 0..REMEMBERED as u32 {
            maker.follow(90_000 + n, &low_layer()[0]).expect("a key frame");
        }
        assert_eq!(make(&mut maker, &REQUEST), Err(StillError::NoBase));
    }
}
