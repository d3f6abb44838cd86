//! Kernels of real compilers.
