#![doc = include_str!("../README.md")]

mod architecture;
mod choice;
pub mod conformance;
mod cpu;
pub mod cuda;
mod engine;
mod faithful;
#[doc(hidden)]
pub mod fixtures;
mod gate;
mod kernel;
mod last_layer;
mod model;
mod network_choice;
mod number;
mod packed;
mod picture;
mod simd;
mod tiles;

pub use architecture::{
    Architecture, ArchitectureError, CHANNEL_STEP, Inputs, Kind, MAX_CHANNELS, MAX_CONVS,
};
pub use choice::EngineChoice;
pub use cpu::CpuEngine;
pub use cuda::{CudaEngine, CudaError};
pub use engine::{Engine, SwapError};
pub use last_layer::{LastLayer, Learned};
pub use model::{
    Conv, Model, ModelError, by_four_model, embedded_model, fused_m_model, fused_model,
};
pub use network_choice::{NamedModel, NetworkChoice, NetworkError};
pub use picture::{InferError, Input, Luma, MAX_SIDE, Residual};
pub use simd::Simd;
pub use tiles::{EnergyOfTile, energy_by_tile, infer_tiles, infer_tiles_fused};
pub use windlass_vp9::simd::cap::cap as max_isa;
