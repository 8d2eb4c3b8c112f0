//! The hybrid decoder as a WebAssembly module with a plain C interface.
