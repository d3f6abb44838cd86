//! Handloom.
