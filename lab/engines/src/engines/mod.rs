//! The engines that run networks: Windlass's and those of libraries, one file for each, behind one trait.

pub(crate) mod candle;
mod onnxruntime;
mod ours;
mod ours_gpu;
mod rten;
mod tract;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use windlass_sr::{Model, Simd};

use self::onnxruntime::Provider;
use crate::args::{Maker, Size};
use crate::calibrate::ranges;
use crate::{bytes, onnx, pictures::pictures};

/// Number of pictures whose values 8 bits must span; none of them is measured.
const CALIBRATION: usize = 4;

/// Runs a network on pictures of one size.
pub(crate) trait Worker: Send {
    /// Computes the residual of an 8-bit picture and passes it to `read`. The residual is lent, so that no engine
    /// pays for a copy that its callers do not need.
    fn infer(&mut self, luma: &[u8], read: &mut dyn FnMut(&[f32])) -> Result<()>;
}

/// An engine in a type of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Windlass's engine on an instruction set.
    Ours(Simd),
    /// Windlass's engine on a GPU.
    OursGpu,
    /// onnxruntime in single precision.
    Ort,
    /// onnxruntime in 8 bits.
    OrtBytes,
    /// onnxruntime's CUDA provider.
    OrtCuda,
    /// onnxruntime's TensorRT provider.
    OrtTensorrt,
    /// The library rten.
    Rten,
    /// The library tract.
    Tract,
    /// The library candle.
    Candle,
}

impl Kind {
    /// The engines of some makers. Windlass's is there in single precision and, where another type is faster, in what
    /// it runs by default.
    pub(crate) fn of(makers: &[Maker]) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for maker in makers {
            match maker {
                Maker::Ours => {
                    let (single, best) = (Simd::single(), Simd::available().pop());
                    kinds.push(Kind::Ours(single));
                    kinds.extend(best.filter(|best| *best != single).map(Kind::Ours));
                }
                Maker::OursGpu => kinds.push(Kind::OursGpu),
                Maker::OrtCuda => kinds.push(Kind::OrtCuda),
                Maker::OrtTensorrt => kinds.push(Kind::OrtTensorrt),
                Maker::Ort => kinds.extend([Kind::Ort, Kind::OrtBytes]),
                Maker::Rten => kinds.push(Kind::Rten),
                Maker::Tract => kinds.push(Kind::Tract),
                Maker::Candle => kinds.push(Kind::Candle),
            }
        }
        kinds
    }

    /// The engine's name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ours(simd) => simd.name(),
            Kind::OursGpu => "cuda",
            Kind::Ort | Kind::OrtBytes => "ort",
            Kind::OrtCuda => "ort-cuda",
            Kind::OrtTensorrt => "ort-tensorrt",
            Kind::Rten => "rten",
            Kind::Tract => "tract",
            Kind::Candle => "candle",
        }
    }

    /// The type of number between the layers.
    pub(crate) fn number(self) -> &'static str {
        match self {
            Kind::Ours(simd) => simd.number(),
            Kind::OrtBytes => "int8",
            Kind::OursGpu | Kind::OrtTensorrt => "f16",
            // cuDNN's products: f32 that are rounded to 10 bits of fraction.
            Kind::OrtCuda => "tf32",
            _ => "f32",
        }
    }

    /// Whether the engine is Windlass's.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Kind::Ours(_) | Kind::OursGpu)
    }

    /// Whether the engine needs a GPU.
    pub(crate) fn is_on_gpu(self) -> bool {
        matches!(self, Kind::OursGpu | Kind::OrtCuda | Kind::OrtTensorrt)
    }
}

/// Makes engines for a network at one size.
pub(crate) struct Workshop {
    model: Arc<Model>,
    size: Size,
    onnxruntime: Option<PathBuf>,
    single: Vec<u8>,
    /// The quantised network as an ONNX file. It is made when an engine first asks for it, as that takes runs of the
    /// network.
    bytes: Option<Vec<u8>>,
}

impl Workshop {
    /// A workshop that has made nothing yet.
    pub(crate) fn new(model: Arc<Model>, size: Size, onnxruntime: Option<PathBuf>) -> Result<Self> {
        let single = onnx::file(&model, (size.width, size.height));
        Ok(Workshop { model, size, onnxruntime, single, bytes: None })
    }

    /// Makes an engine that uses `threads` threads on a picture.
    pub(crate) fn make(&mut self, kind: Kind, threads: usize) -> Result<Box<dyn Worker>> {
        Ok(match kind {
            Kind::Ours(simd) => Box::new(ours::Network::new(&self.model, simd, self.size)?),
            Kind::OursGpu => Box::new(ours_gpu::Network::new(&self.model, self.size)?),
            Kind::Ort => Box::new(self.session(&self.single, threads, Provider::Cpu)?),
            Kind::OrtCuda => Box::new(self.session(&self.single, threads, Provider::Cuda)?),
            Kind::OrtTensorrt => {
                Box::new(self.session(&self.single, threads, Provider::Tensorrt)?)
            }
            Kind::OrtBytes => {
                if self.bytes.is_none() {
                    // The calibration takes the pictures after those that are measured.
                    let all = pictures(self.size, crate::measure::PICTURES + CALIBRATION)?;
                    let ranges = ranges(&self.model, self.size, &all[crate::measure::PICTURES..])?;
                    self.bytes = Some(bytes::file(&self.model, self.size, &ranges)?);
                }
                let bytes = self.bytes.as_deref().unwrap_or_default();
                Box::new(self.session(bytes, threads, Provider::Cpu)?)
            }
            Kind::Rten => Box::new(rten::Network::new(self.single.clone(), self.size, threads)?),
            Kind::Tract => Box::new(tract::Network::new(&self.single, self.size, threads)?),
            Kind::Candle => Box::new(candle::Network::new(&self.model, self.size, threads)?),
        })
    }

    fn session(
        &self,
        file: &[u8],
        threads: usize,
        provider: Provider,
    ) -> Result<onnxruntime::Network> {
        let path = self.onnxruntime.as_deref().ok_or_else(|| {
            anyhow!("no library was named: --onnxruntime PATH or ORT_DYLIB_PATH is needed")
        })?;
        onnxruntime::Network::new(path, file, self.size, threads, provider)
    }
}

/// Converts samples to the form that the networks were trained with.
pub(crate) fn unit(luma: &[u8], samples: &mut Vec<f32>) {
    samples.clear();
    samples.extend(luma.iter().map(|sample| f32::from(*sample) * (1.0 / 255.0) - 0.5));
}

#[cfg(test)]
mod tests {
    use windlass_sr::{Architecture, embedded_model};

    use super::*;
    use crate::quality::{Quality, reference};

    /// onnxruntime is there if the environment names it, as it is for the program.
    fn workshop(model: &Arc<Model>, size: Size) -> Workshop {
        let library = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from);
        Workshop::new(model.clone(), size, library).unwrap()
    }

    #[test]
    fn every_engine_gives_what_plain_code_gives() {
        let size = Size { width: 40, height: 24 };
        let picture = &pictures(size, 1).unwrap()[0];
        let blocks = Model::random(Architecture::blocks(3, 16, 2), 1).unwrap();
        for model in [embedded_model().unwrap(), Arc::new(blocks)] {
            let expected = reference(&model, size, picture).unwrap();
            let mut workshop = workshop(&model, size);
            for kind in Kind::of(&Maker::ALL) {
                if workshop.onnxruntime.is_none() && kind.name().starts_with("ort") {
                    continue;
                }
                for threads in [1, 2] {
                    let mut worker = match workshop.make(kind, threads) {
                        Err(why) if kind.is_on_gpu() => {
                            println!("{} is left out: {why:#}", kind.name());
                            continue;
                        }
                        made => made.unwrap(),
                    };
                    let quality = Quality::of(&mut *worker, picture, &expected).unwrap();
                    let least = match kind.number() {
                        "f32" => 100.0,
                        "int8" => 30.0,
                        _ => 60.0,
                    };
                    assert!(
                        quality.psnr_db.is_none_or(|psnr| psnr > least),
                        "{kind:?} on {threads}: {quality:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_an_error_with_its_path() {
        let size = Size { width: 16, height: 16 };
        let model = embedded_model().unwrap();
        let mut none = Workshop::new(model.clone(), size, None).unwrap();
        let error = none.make(Kind::Ort, 1).err().unwrap();
        assert!(error.to_string().contains("--onnxruntime"), "{error}");
        let wrong = Some(PathBuf::from("/nowhere/libonnxruntime.so"));
        let error = Workshop::new(model, size, wrong).unwrap().make(Kind::Ort, 1).err().unwrap();
        assert!(format!("{error:#}").contains("/nowhere/libonnxruntime.so"), "{error:#}");
    }
}
