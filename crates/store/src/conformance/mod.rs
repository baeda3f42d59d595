//! The behaviours that every store must show.
