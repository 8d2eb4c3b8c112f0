//! The jobs of the coder's threads. Jobs of one kind are done together.

use std::sync::Arc;

use crossbeam_channel::Sender;
use windlass_hybrid::Detail;
use windlass_hybrid::anchor::codec::{AnchorCodecError, Htj2k, Strength};
use windlass_types::Size;
use windlass_types::tiles::TileMap;
use windlass_vp9::{Plane, PlaneSize};

use super::error::AnchorError;
use super::{CudaCoder, TileDetail};
use crate::cuda::resident::ResidentPicture;

/// Kinds of work. Only work of one kind goes in one launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Details of one size.
    Detail(PlaneSize),
    /// A picture on this GPU that is measured.
    Measure(usize),
    /// Pictures on this GPU whose images have one size.
    Resident(usize, PlaneSize),
}

impl Kind {
    /// The only GPU that can do work of this kind; `None`: any can.
    pub(super) fn gpu(self) -> Option<usize> {
        match self {
            Kind::Detail(..) => None,
            Kind::Measure(gpu) | Kind::Resident(gpu, _) => Some(gpu),
        }
    }
}

/// Encoded bytes of an anchor and, if it was asked for, the image that was encoded.
pub type Coded = (Vec<u8>, Option<Detail>);

/// A job, and the channel for its answer.
pub(super) enum Job {
    Measure(ResidentPicture, Arc<Plane>, Sender<Result<Vec<TileDetail>, AnchorError>>),
    Code(Code),
}

/// Quality and size limit for encoding an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// Quality, 1 to 100.
    pub quality: u8,
    /// Maximum encoded bytes. If the quality needs more, the code is as large as this allows.
    pub max_bytes: usize,
}

/// An image to be encoded.
pub(super) struct Code {
    pub image: Image,
    pub coding: Encoding,
    pub back: Sender<Result<Coded, AnchorError>>,
}

/// The place of an image that is to be encoded.
pub(super) enum Image {
    Here(Arc<Detail>),
    /// On the GPU: some tiles of a picture, and whether the image is wanted back.
    There(ResidentPicture, TileMap, bool),
}

impl Job {
    /// Fails the job with a reason, which the waiting worker gets.
    pub(super) fn fail(self, why: AnchorError) {
        // Nobody waits any more where this fails, here and below.
        match self {
            Job::Measure(_, _, back) => drop(back.try_send(Err(why))),
            Job::Code(code) => drop(code.back.try_send(Err(why))),
        }
    }
}

/// Does jobs of one kind. `made` learns the number of codes before the answers are sent.
pub(super) fn run(
    coder: &mut CudaCoder,
    jobs: Vec<Job>,
    made: impl FnOnce(usize),
) -> Result<(), AnchorError> {
    let (mut codes, mut failed) = (Vec::new(), None);
    for job in jobs {
        match job {
            Job::Code(code) => codes.push(code),
            Job::Measure(resident, seen, back) => {
                let measured = coder.measure(&resident, &seen).map_err(AnchorError::from);
                failed = measured.as_ref().err().cloned().or(failed);
                drop(resident);
                let _ = back.try_send(measured);
            }
        }
    }
    if let Some(why) = failed {
        fail_all(codes, &why);
        return Err(why);
    }
    match code_all(coder, &codes) {
        Ok(all) => {
            made(all.len());
            for (Code { image, back, .. }, coded) in codes.into_iter().zip(all) {
                // Whoever is told may want that memory again.
                drop(image);
                let _ = back.try_send(coded.map_err(AnchorError::Codec));
            }
            Ok(())
        }
        Err(why) => {
            fail_all(codes, &why);
            Err(why)
        }
    }
}

fn fail_all(codes: Vec<Code>, why: &AnchorError) {
    for code in codes {
        Job::Code(code).fail(why.clone());
    }
}

/// Encodes images of one size.
fn code_all(
    coder: &mut CudaCoder,
    codes: &[Code],
) -> Result<Vec<Result<Coded, AnchorCodecError>>, AnchorError> {
    let mut here: Vec<&Detail> = Vec::new();
    let mut there: Vec<(&ResidentPicture, &TileMap)> = Vec::new();
    for code in codes {
        match &code.image {
            Image::Here(detail) => here.push(detail),
            Image::There(resident, tiles, _) => there.push((resident, tiles)),
        }
    }
    let (format, strengths) = if let Some(detail) = here.first() {
        let format = Htj2k::format(detail)?;
        let samples: Vec<&[i16]> = here.iter().map(|detail| detail.samples()).collect();
        coder.transform(&samples, format, Htj2k::LEVELS)?;
        (format, Vec::new())
    } else if let Some((resident, tiles)) = there.first() {
        let PlaneSize { width, height } = resident.image_size(tiles);
        let format = Htj2k::format_of(Size::saturating(width, height))?;
        (format, coder.transform_tiles(&there, format, Htj2k::LEVELS)?)
    } else {
        return Ok(Vec::new());
    };
    let steps = codes.iter().enumerate().map(|(n, code)| (n, Htj2k::step(code.coding.quality)));
    let all = coder.encode(&steps.collect::<Vec<_>>())?;
    let mut within = Vec::with_capacity(codes.len());
    for (n, (code, coded)) in codes.iter().zip(all).enumerate() {
        let coded = if coded.len() <= code.coding.max_bytes {
            Ok(coded)
        } else {
            let strength = match &code.image {
                Image::Here(detail) => Strength::from(&**detail),
                Image::There(..) => strengths[n],
            };
            code_within(coder, strength, n, code.coding.max_bytes)?
        };
        let wanted = matches!(code.image, Image::There(_, _, true));
        let image = wanted.then(|| coder.image(n, format)).transpose()?;
        let (width, height) = (format.width as usize, format.height as usize);
        let image = image.and_then(|samples| Detail::from_samples(width, height, samples));
        within.push(coded.map(|coded| (coded, image)));
    }
    Ok(within)
}

/// Encodes a transformed image in at most the given bytes.
fn code_within(
    coder: &mut CudaCoder,
    strength: Strength,
    n: usize,
    max: usize,
) -> Result<Result<Vec<u8>, AnchorCodecError>, AnchorError> {
    let mut failed = None;
    let coded = Htj2k::encode_within_by(strength, max, |step| {
        let coded = coder.encode(&[(n, step)]).map(|all| all.into_iter().next());
        let coded = coded.map_err(|why| failed = Some(why)).ok().flatten();
        coded.ok_or(AnchorCodecError::Encode)
    });
    failed.map_or(Ok(coded), |why| Err(why.into()))
}
