//! Weights of a network, validated on loading.
//!
//! Stored as safetensors, f32: `conv{n}.weight [out, in, 3, 3]` and `conv{n}.bias [out]`, numbered in order. Metadata
//! keys, with their defaults first: `arch` (`chain` or `blocks`), `scale` (`2`, `3` or `4`), `inputs` (`luma` or
//! `luma+twin`), `base` (`lanczos3`). The rest follows from the tensors; see [`Architecture`]. Everything is checked
//! before use: foreign bytes never cause a panic, nor more memory than the file's size.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use safetensors::{Dtype, SafeTensors};
use thiserror::Error;

use crate::architecture::{Architecture, ArchitectureError, Inputs, Kind, MAX_CONVS};
use crate::number::F32;
#[cfg(target_arch = "x86_64")]
use crate::number::{Bf16, F16};
use crate::packed::Packed;

/// Maximum magnitude of a weight. Larger weights could make sums overflow.
const GREATEST: f32 = 1e6;

/// The default network, compiled into the binary.
static EMBEDDED: &[u8] = include_bytes!("../../../models/xs-x2.safetensors");
/// The default network with a twin input, for servers.
static FUSED: &[u8] = include_bytes!("../../../models/fused-xs-x2.safetensors");
/// A larger network with a twin input.
static FUSED_M: &[u8] = include_bytes!("../../../models/fused-m-x2.safetensors");
/// A network of scale 4 that takes only the low picture.
static BY_FOUR: &[u8] = include_bytes!("../../../models/xs-x4.safetensors");

/// Why weights were refused.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Not a safetensors file, or a tensor is missing.
    #[error("not a safetensors file: {0}")]
    Format(#[from] safetensors::SafeTensorError),
    /// A tensor is of another type or shape than the network's.
    #[error("tensor {name} is {dtype:?} {shape:?}, not F32 {expected:?}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Type of the tensor.
        dtype: Dtype,
        /// Shape of the tensor.
        shape: Vec<usize>,
        /// Shape that the tensor must have.
        expected: Vec<usize>,
    },
    /// A weight is not a number, or far too great.
    #[error("tensor {name} holds a weight that is not finite or beyond {GREATEST}")]
    Weight {
        /// Name of the tensor.
        name: String,
    },
    /// The metadata name something that this engine does not know.
    #[error("the model's {key} is {value:?}, which is not known here")]
    Metadata {
        /// The key of the metadata.
        key: &'static str,
        /// The value that the key has.
        value: String,
    },
    /// The network is of a size that no backend runs.
    #[error(transparent)]
    Architecture(#[from] ArchitectureError),
    /// There are tensors beside those of the convolutions.
    #[error("{0} tensors are not those of {1} convolutions")]
    Tensors(usize, usize),
}

/// One convolution: `weights [out, in, 3, 3]`, `bias [out]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Weights in row-major order.
    pub weights: Vec<f32>,
    /// One bias for each output channel.
    pub bias: Vec<f32>,
}

/// A network: its architecture and its weights.
#[derive(Debug, Clone)]
pub struct Model {
    architecture: Architecture,
    convs: Vec<Conv>,
    packs: Packs,
    /// Weights packed for the GPU, in each form that its kernels read; packed when first asked for.
    fragments: [OnceLock<Box<[u8]>>; FORMS],
}

/// Number of forms in which the GPU's kernels read weights.
const FORMS: usize = 3;

/// Weights in the order in which the CPU's kernels read them, for each type of number that an engine asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Packs {
    pub f32: OnceLock<Packed<F32>>,
    #[cfg(target_arch = "x86_64")]
    pub f16: OnceLock<Packed<F16>>,
    #[cfg(target_arch = "x86_64")]
    pub bf16: OnceLock<Packed<Bf16>>,
    /// Whether the fastest form keeps the model's result.
    faithful: OnceLock<bool>,
}

/// Loads the built-in network that takes only the low picture, at scale 2.
///
/// # Errors
///
/// Fails if the weights that were built in cannot be read.
pub fn embedded_model() -> Result<Arc<Model>, ModelError> {
    Model::from_safetensors(EMBEDDED).map(Arc::new)
}

/// Loads the built-in network `fused-xs-x2`, which also takes the twin's picture: the server's default.
///
/// # Errors
///
/// Fails if the weights that were built in cannot be read.
pub fn fused_model() -> Result<Arc<Model>, ModelError> {
    Model::from_safetensors(FUSED).map(Arc::new)
}

/// Loads the built-in network `fused-m-x2`, at three and a half times the cost: the server runs it if there is time.
///
/// # Errors
///
/// Fails if the weights that were built in cannot be read.
pub fn fused_m_model() -> Result<Arc<Model>, ModelError> {
    Model::from_safetensors(FUSED_M).map(Arc::new)
}

/// Loads the built-in network that takes only the low picture, at scale 4.
///
/// # Errors
///
/// Fails if the weights that were built in cannot be read.
pub fn by_four_model() -> Result<Arc<Model>, ModelError> {
    Model::from_safetensors(BY_FOUR).map(Arc::new)
}

impl Model {
    /// Reads and validates weights; never panics on foreign bytes.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are no safetensors file, describe an architecture that the engines do not run, or hold a
    /// tensor of another shape or a weight that is not finite.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, ModelError> {
        let (_, metadata) = SafeTensors::read_metadata(bytes)?;
        let fields = metadata.metadata().clone().unwrap_or_default();
        let kind = choice(&fields, "arch", &[("chain", Kind::Chain), ("blocks", Kind::Blocks)])?;
        let both = [("luma", Inputs::Luma), ("luma+twin", Inputs::LumaAndTwin)];
        let inputs = choice(&fields, "inputs", &both)?;
        let scale = choice(&fields, "scale", &[("2", 2), ("3", 3), ("4", 4)])?;
        choice(&fields, "base", &[("lanczos3", ())])?;
        let file = SafeTensors::deserialize(bytes)?;
        let named = |n: usize| file.tensor(&format!("conv{n}.weight"));
        let convs = (0..=MAX_CONVS).take_while(|n| named(*n).is_ok()).count();
        let channels = named(0)?.shape().first().copied().unwrap_or(0);
        let architecture = Architecture { kind, inputs, scale, channels, convs };
        architecture.check()?;
        if file.len() != 2 * convs {
            return Err(ModelError::Tensors(file.len(), convs));
        }
        let convs = (0..convs).map(|n| {
            let (outputs, inputs) = architecture.shape(n);
            Ok(Conv {
                weights: tensor(&file, &format!("conv{n}.weight"), &[outputs, inputs, 3, 3])?,
                bias: tensor(&file, &format!("conv{n}.bias"), &[outputs])?,
            })
        });
        let convs = convs.collect::<Result<_, ModelError>>()?;
        Ok(Model::from_convs(architecture, convs))
    }

    /// A network of pseudo-random weights, for tests and for the speed of architectures that nobody has trained yet:
    /// activations keep their size from layer to layer, and the residual is some ten grey levels.
    ///
    /// # Errors
    ///
    /// Fails if the engines do not run the architecture ([`Architecture::check`]).
    pub fn random(architecture: Architecture, seed: u64) -> Result<Self, ArchitectureError> {
        architecture.check()?;
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        };
        let convs = (0..architecture.convs).map(|n| {
            let (outputs, inputs) = architecture.shape(n);
            let gain = if n + 1 == architecture.convs {
                30.0
            } else if architecture.ends_block(n) {
                0.4
            } else {
                1.0
            };
            let bound = gain * (6.0 / (9 * inputs) as f32).sqrt();
            Conv {
                weights: (0..outputs * inputs * 9).map(|_| bound * next()).collect(),
                bias: (0..outputs).map(|_| 0.1 * next()).collect(),
            }
        });
        let convs = convs.collect();
        Ok(Model::from_convs(architecture, convs))
    }

    /// Creates a model. The caller has checked the architecture and all shapes.
    pub(crate) fn from_convs(architecture: Architecture, convs: Vec<Conv>) -> Self {
        Model { architecture, convs, packs: Packs::default(), fragments: Default::default() }
    }

    /// The network's architecture: everything but its weights.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Convolutions in order, with the shapes that [`Architecture::shape`] gives.
    pub fn convs(&self) -> &[Conv] {
        &self.convs
    }

    /// Weights in one of the forms that the GPU's kernels read, made by `pack` when first asked for.
    pub(super) fn fragments(&self, form: usize, pack: impl FnOnce(&Model) -> Box<[u8]>) -> &[u8] {
        self.fragments[form].get_or_init(|| pack(self))
    }

    /// Whether the fastest form keeps the model's result, decided by `find` when first asked for.
    pub(super) fn is_kept(&self, find: impl FnOnce(&Model) -> bool) -> bool {
        *self.packs.faithful.get_or_init(|| find(self))
    }

    /// The weights in the order in which the CPU's kernels read them.
    pub(super) fn packs(&self) -> &Packs {
        &self.packs
    }
}

/// Value of a metadata key; the first of the known values if the key is missing.
fn choice<T: Copy>(
    fields: &HashMap<String, String>,
    key: &'static str,
    known: &[(&str, T)],
) -> Result<T, ModelError> {
    let value = fields.get(key).map_or(known[0].0, String::as_str);
    let found = known.iter().find(|(name, _)| *name == value);
    found.map(|(_, t)| *t).ok_or_else(|| ModelError::Metadata { key, value: value.to_owned() })
}

/// Reads a tensor's values, if its shape is the expected one.
fn tensor(file: &SafeTensors<'_>, name: &str, expected: &[usize]) -> Result<Vec<f32>, ModelError> {
    let view = file.tensor(name)?;
    if view.dtype() != Dtype::F32 || view.shape() != expected {
        return Err(ModelError::Shape {
            name: name.to_owned(),
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            expected: expected.to_vec(),
        });
    }
    let (words, _) = view.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|w| f32::from_le_bytes(*w)).collect();
    if values.iter().any(|v| !v.is_finite() || v.abs() > GREATEST) {
        return Err(ModelError::Weight { name: name.to_owned() });
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use safetensors::tensor::TensorView;

    use super::*;

    /// A file as it is written, to be spoilt.
    #[derive(Clone)]
    struct File {
        tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
        metadata: HashMap<String, String>,
    }

    impl File {
        fn of(model: &Model) -> Self {
            let architecture = model.architecture();
            let mut tensors = Vec::new();
            for (n, conv) in model.convs().iter().enumerate() {
                let (outputs, inputs) = architecture.shape(n);
                let shape = vec![outputs, inputs, 3, 3];
                tensors.push((format!("conv{n}.weight"), shape, conv.weights.clone()));
                tensors.push((format!("conv{n}.bias"), vec![outputs], conv.bias.clone()));
            }
            let arch = if architecture.kind == Kind::Chain { "chain" } else { "blocks" };
            let inputs = if architecture.has_twin() { "luma+twin" } else { "luma" };
            let scale = architecture.scale.to_string();
            let fields =
                [("arch", arch), ("inputs", inputs), ("scale", &scale), ("base", "lanczos3")];
            let metadata = fields.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            File { tensors, metadata }
        }

        fn small() -> Self {
            File::of(&Model::random(Architecture::chain(2, 16, 3), 1).unwrap())
        }

        fn to_bytes(&self) -> Vec<u8> {
            let data: Vec<(String, Vec<usize>, Vec<u8>)> = self
                .tensors
                .iter()
                .map(|(name, shape, values)| {
                    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                    (name.clone(), shape.clone(), bytes)
                })
                .collect();
            let views = data.iter().map(|(name, shape, bytes)| {
                (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
            });
            safetensors::serialize(views, Some(self.metadata.clone())).unwrap()
        }

        fn load(&self) -> Result<Model, ModelError> {
            Model::from_safetensors(&self.to_bytes())
        }
    }

    #[test]
    fn the_embedded_model_is_the_small_chain() {
        let model = embedded_model().unwrap();
        assert_eq!(model.architecture(), Architecture::chain(2, 16, 5));
    }

    #[test]
    fn every_architecture_is_read_as_it_was_written() {
        for architecture in [
            Architecture::chain(3, 8, 2),
            Architecture::chain(4, 24, 7).with_twin(),
            Architecture::blocks(3, 32, 2),
            Architecture::blocks(4, 16, 1).with_twin(),
        ] {
            let model = Model::random(architecture, 5).unwrap();
            let read = File::of(&model).load().unwrap();
            assert_eq!(read.architecture(), architecture);
            assert_eq!(read.convs(), model.convs());
        }
    }

    #[test]
    fn a_file_without_metadata_is_a_chain_on_luma_that_doubles() {
        let mut file = File::small();
        file.metadata.clear();
        assert_eq!(file.load().unwrap().architecture(), Architecture::chain(2, 16, 3));
    }

    #[test]
    fn bytes_that_are_no_model_are_refused() {
        assert!(matches!(Model::from_safetensors(b"nonsense"), Err(ModelError::Format(_))));
        assert!(matches!(Model::from_safetensors(&[]), Err(ModelError::Format(_))));
        let whole = File::small().to_bytes();
        for end in 0..whole.len().min(2_000) {
            assert!(Model::from_safetensors(&whole[..end]).is_err());
        }
    }

    #[test]
    fn a_missing_tensor_one_too_many_and_another_shape_are_refused() {
        let mut file = File::small();
        let (_, shape, _) = file.tensors.iter_mut().find(|t| t.0 == "conv1.bias").unwrap();
        *shape = vec![4, 4];
        assert!(matches!(file.load(), Err(ModelError::Shape { name, .. }) if name == "conv1.bias"));
        file.tensors.retain(|t| t.0 != "conv1.bias");
        assert!(matches!(file.load(), Err(ModelError::Tensors(5, 3))));
        let mut file = File::small();
        file.tensors.retain(|t| !t.0.starts_with("conv1."));
        assert!(matches!(file.load(), Err(ModelError::Architecture(ArchitectureError::Convs(1)))));
        let mut file = File::small();
        file.tensors.push(("conv9.weight".to_owned(), vec![1], vec![0.0]));
        assert!(matches!(file.load(), Err(ModelError::Tensors(7, 3))));
        let mut file = File::small();
        file.tensors.retain(|t| t.0 != "conv0.weight");
        assert!(matches!(
            file.load(),
            Err(ModelError::Format(safetensors::SafeTensorError::TensorNotFound(_)))
        ));
    }

    #[test]
    fn weights_that_are_not_finite_are_refused() {
        for bad in [f32::NAN, f32::INFINITY, 1e30] {
            let mut file = File::small();
            file.tensors[3].2[0] = bad;
            assert!(matches!(file.load(), Err(ModelError::Weight { .. })));
        }
    }

    #[test]
    fn metadata_that_name_something_unknown_are_refused() {
        for (key, bad) in [("scale", "5"), ("arch", "unet"), ("inputs", "rgb"), ("base", "bicubic")]
        {
            let mut file = File::small();
            file.metadata.insert(key.to_owned(), bad.to_owned());
            assert!(matches!(
                file.load(),
                Err(ModelError::Metadata { key: k, value }) if k == key && value == bad
            ));
        }
        // The tensors are those of another scale.
        let mut file = File::small();
        file.metadata.insert("scale".to_owned(), "3".to_owned());
        assert!(matches!(file.load(), Err(ModelError::Shape { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn spoilt_files_are_refused_or_read_but_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            header_only in any::<bool>(),
            end in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let mut bytes = File::small().to_bytes();
            let header = 8 + usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
            let range = if header_only { header } else { bytes.len() };
            for (at, value) in changes {
                bytes[at.index(range)] = value;
            }
            if let Some(end) = end {
                bytes.truncate(end.index(range));
            }
            if let Ok(model) = Model::from_safetensors(&bytes) {
                prop_assert!(model.architecture().check().is_ok());
                let weights = model.convs().iter().flat_map(|conv| &conv.weights);
                prop_assert!(weights.into_iter().all(|w| w.is_finite()));
            }
        }
    }
}
